"""Matmul and attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels import attention as kernels
from irload.plan.backends.numpy.kernels import matmul as products
from irload.plan.backends.numpy.kernels import weight_streaming as streamed
from irload.plan.backends.numpy.kernels.copying import as_rows, stack
from irload.plan.backends.numpy.kernels.epilogue import flattened
from irload.plan.backends.numpy.kernels.packing import contiguous, pack_matrix
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.selection.selector import Binder, Phases, binds
from irload.plan.ir.steps import Attention, MatMul


@binds(MatMul)
def product(step: MatMul, binder: Binder) -> tuple[str, Phases]:
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


def _by_matrix(step: MatMul, binder: Binder, a: Array, out: Array, extra: list[Array]) -> tuple[str, Phases]:
    """Rows times one matrix: by the number of rows, and the size of the matrix where it is constant."""
    matrix, turned = step.inputs[1], step.transpose_b
    rows, (n, k) = len(out), matrix.shape if turned else matrix.shape[::-1]

    def laid() -> Array:
        if not matrix.is_constant or rows == 1:  # a matrix–vector product takes weights either way
            return binder.view(matrix).T if turned else binder.view(matrix)
        kind = "laid out, transposed" if turned else "laid out"
        return binder.weights(matrix).packed(kind, lambda w: pack_matrix(w.T if turned else w))

    def stored() -> Array:
        weights = binder.weights(matrix)
        return weights.array if turned else weights.packed("transposed", lambda w: contiguous(w.T))

    def way(make: Callable[..., Phases], weights: Callable[[], Array]) -> Phases:
        phases: Phases = []
        wide = [flattened(e, step.output.shape, out.shape, binder.scratch, phases) for e in extra]
        return phases + make(a, weights(), out, wide, step.epilogue, binder.scratch, binder.threads)

    ways: dict[str, Callable[[], Phases]] = {
        "matmul by columns": lambda: way(products.columns_by_matrix, laid),
        "matmul by rows": lambda: way(products.rows_by_matrix, laid),
        "weight streaming": lambda: way(streamed.stream_weights, stored),
    }
    if not matrix.is_constant or rows not in streamed.SMALL_M:
        del ways["weight streaming"]
    first = "matmul by columns" if rows < 16 * binder.threads else "matmul by rows"
    if "weight streaming" in ways and streamed.suits(rows, k, n):
        first = "weight streaming"
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
