"""Matmul and attention."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.bind import Binder, Phases, binds
from irload.plan.kernels import attention as kernels
from irload.plan.kernels import product as products
from irload.plan.kernels import streamed
from irload.plan.kernels.copying import as_rows, stack
from irload.plan.kernels.packing import contiguous, laid_out
from irload.plan.steps import Attention, Product


@binds(Product)
def product(step: Product, binder: Binder) -> tuple[str, Phases]:
    """A matmul."""
    a, b, *extra = (binder.view(v) for v in step.inputs)
    out = binder.view(step.output)
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    flat = as_rows(a), as_rows(out)
    if b.ndim == 2 and flat[0] is not None and flat[1] is not None:
        wide = [np.broadcast_to(e, out.shape).reshape(flat[1].shape) if e.size > 1 else e for e in extra]
        fixed = step.inputs[1].constant is not None
        return _by_matrix(step, binder, flat[0], b, fixed, flat[1], wide)
    b = b.swapaxes(-1, -2) if step.transpose_b else b
    if out.ndim == 2:
        make = products.rows_by_matrix
        return "matmul by rows", [make(a, b, out, extra, step.epilogue, binder.scratch, binder.threads)]
    lead = int(np.prod(out.shape[:-2]))
    stacked = [stack(x, out.shape[:-2], lead) for x in (a, b, out)]
    if stacked[2] is not None and stacked[0] is not None and stacked[1] is not None and not extra:
        a, b, out = stacked[0], stacked[1], stacked[2]
    return "batched matmul", products.batched(a, b, out, extra, step.epilogue, binder.scratch, binder.threads)


def _by_matrix(
    step: Product, binder: Binder, a: Array, b: Array, fixed: bool, out: Array, extra: list[Array]
) -> tuple[str, Phases]:
    """Rows times one matrix, `fixed` where it is constant: by the number of rows and the size of the matrix."""
    rows, (n, k) = len(out), b.shape if step.transpose_b else b.shape[::-1]
    if fixed and streamed.suits(rows, k, n):
        w = b if step.transpose_b else binder.pack("transpose", b, lambda w: contiguous(w.T))
        make = streamed.weights_first
        return "weights first", make(a, w, out, extra, step.epilogue, binder.scratch, binder.threads)
    # A single row is a matrix–vector product, which takes weights either way.
    if fixed and rows > 1:
        kind = "laid out, transposed" if step.transpose_b else "laid out"
        b = binder.pack(kind, b, lambda w: laid_out(w.T if step.transpose_b else w))
    elif step.transpose_b:
        b = b.T
    few = rows < 16 * binder.threads
    make = products.columns_by_matrix if few else products.rows_by_matrix
    kernel = "matmul by columns" if few else "matmul by rows"
    return kernel, [make(a, b, out, extra, step.epilogue, binder.scratch, binder.threads)]


@binds(Attention)
def attention(step: Attention, binder: Binder) -> tuple[str, Phases]:
    """Attention."""
    q, k, v, *rest = (binder.view(x) for x in step.inputs)
    mask = rest[0] if rest else None
    phases: Phases = []
    if step.causal:
        seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
        mask = np.where(seen, np.float32(0), np.float32(-np.inf))
    elif mask is not None and mask.dtype == bool:
        told, mask = mask, binder.scratch.take(mask.shape)
        phases.append([[(kernels.keep, (told, mask))]])
    out = binder.view(step.output)
    return "head by head", [
        *phases,
        kernels.attention(q, k, v, mask, out, step.scale, binder.scratch, binder.threads),
    ]
