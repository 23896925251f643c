"""Matmul and attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core.tensor import Array
from irload.plan.bind import Binder, Phases, binds
from irload.plan.kernels import attention as kernels
from irload.plan.kernels import product as products
from irload.plan.kernels import streamed
from irload.plan.kernels.copying import as_rows, stack
from irload.plan.kernels.operands import flattened
from irload.plan.kernels.packing import contiguous, laid_out
from irload.plan.kernels.views import frozen
from irload.plan.steps import Attention, Product


@binds(Product)
def product(step: Product, binder: Binder) -> tuple[str, Phases]:
    """A matmul."""
    a, *extra = (binder.view(v) for k, v in enumerate(step.inputs) if k != 1)
    out = binder.view(step.output)
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    flat = as_rows(a), as_rows(out)
    if len(step.inputs[1].shape) == 2 and flat[0] is not None and flat[1] is not None:
        return _by_matrix(step, binder, flat[0], flat[1], extra)
    b = binder.view(step.inputs[1])
    b = b.swapaxes(-1, -2) if step.transpose_b else b
    lead = int(np.prod(out.shape[:-2]))
    stacked = [stack(x, out.shape[:-2], lead) for x in (a, b, out)]
    if stacked[2] is not None and stacked[0] is not None and stacked[1] is not None and not extra:
        a, b, out = stacked[0], stacked[1], stacked[2]
    return "batched matmul", products.batched(a, b, out, extra, step.epilogue, binder.scratch, binder.threads)


def _by_matrix(step: Product, binder: Binder, a: Array, out: Array, extra: list[Array]) -> tuple[str, Phases]:
    """Rows times one matrix: by the number of rows, and the size of the matrix where it is constant."""
    matrix, turned = step.inputs[1], step.transpose_b
    rows, (n, k) = len(out), matrix.shape if turned else matrix.shape[::-1]

    def laid() -> Array:
        if not matrix.is_constant or rows == 1:  # a matrix–vector product takes weights either way
            return binder.view(matrix).T if turned else binder.view(matrix)
        kind = "laid out, transposed" if turned else "laid out"
        return binder.weights(matrix).laid(kind, lambda w: laid_out(w.T if turned else w))

    def stored() -> Array:
        weights = binder.weights(matrix)
        return weights.array if turned else weights.laid("transposed", lambda w: contiguous(w.T))

    def way(make: Callable[..., Phases], weights: Callable[[], Array]) -> Phases:
        phases: Phases = []
        wide = [flattened(e, step.output.shape, out.shape, binder.scratch, phases) for e in extra]
        return phases + make(a, weights(), out, wide, step.epilogue, binder.scratch, binder.threads)

    ways: dict[str, Callable[[], Phases]] = {
        "matmul by columns": lambda: way(products.columns_by_matrix, laid),
        "matmul by rows": lambda: way(products.rows_by_matrix, laid),
        "weights first": lambda: way(streamed.weights_first, stored),
    }
    if not matrix.is_constant or rows not in streamed.DOZENS:
        del ways["weights first"]
    first = "matmul by columns" if rows < 16 * binder.threads else "matmul by rows"
    if "weights first" in ways and streamed.suits(rows, k, n):
        first = "weights first"
    return binder.choose(step, {first: ways.pop(first), **ways})


@binds(Attention)
def attention(step: Attention, binder: Binder) -> tuple[str, Phases]:
    """Attention."""
    q, k, v, *rest = (binder.view(x) for x in step.inputs)
    mask, dropped = rest[0] if rest else None, None
    phases: Phases = []
    if step.causal:
        dropped = frozen(~np.tri(q.shape[-2], k.shape[-2], dtype=bool))
    elif mask is not None and mask.dtype == bool:
        kept, mask = mask, None
        dropped = binder.scratch.take(kept.shape, bool)
        phases.append([[(np.logical_not, (kept, dropped))]])
    out = binder.view(step.output)
    parts = kernels.attention(q, k, v, mask, dropped, out, step.scale, binder.scratch, binder.threads)
    return "head by head", [*phases, parts]
