"""Kernel selection for MatMul and attention."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels import attention as heads
from irload.plan.backends.numpy.kernels import matmul as kernels
from irload.plan.backends.numpy.kernels.calls import Phases
from irload.plan.backends.numpy.kernels.compressed import compressed_by_columns, multiply_compressed
from irload.plan.backends.numpy.kernels.copying import as_rows, stack
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.packing import contiguous, pack_matrix
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.kernels.weight_streaming import stream_weights, suits
from irload.plan.backends.numpy.measured import STREAMED_ROWS
from irload.plan.backends.numpy.selection.quantized import has_bytes, product
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import AttentionStep, ExpertMatMulStep, MatMulStep


def matmul(step: MatMulStep, selector: NumpySelector) -> Selected:
    """Select a kernel for a matmul."""
    if has_bytes(step):
        return product(step, selector)
    a, out, epilogue = selector.array(step.inputs[0]), selector.array(step.output), selector.epilogue(step)
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    flat = as_rows(a), as_rows(out)
    if len(step.inputs[1].shape) == 2 and flat[0] is not None and flat[1] is not None:
        return _by_matrix(step, selector, flat[0], flat[1], epilogue)
    b = selector.array(step.inputs[1])
    b = b.swapaxes(-1, -2) if step.transpose_b else b
    lead = prod(out.shape[:-2])
    stacked = [stack(x, out.shape[:-2], lead) for x in (a, b, out)]
    if stacked[2] is not None and stacked[0] is not None and stacked[1] is not None and not epilogue.operands:
        a, b, out = stacked[0], stacked[1], stacked[2]
    return "batched matmul", kernels.batched(a, b, out, epilogue, selector.scratch)


def _by_matrix(step: MatMulStep, selector: NumpySelector, a: Array, out: Array, epilogue: Epilogue) -> Selected:
    """Select a kernel for rows times one matrix, by the number of rows and, for a constant matrix, its size."""
    matrix, turned = step.inputs[1], step.transpose_b
    compressed = selector.compressed(matrix, 1 if turned else 0, multiplied=True)
    if compressed is not None:
        phases: Phases = []
        flat = epilogue.flattened(step.output.shape, out.shape, selector.scratch, phases)
        widened = compressed_by_columns(a, compressed, out, flat, selector.scratch)
        return "matmul of compressed weights", phases + widened
    rows, (n, k) = len(out), matrix.shape if turned else matrix.shape[::-1]

    def packed() -> Array:
        if not matrix.is_constant or rows == 1:  # a matrix–vector product reads weights in either order
            return selector.array(matrix).T if turned else selector.array(matrix)
        kind = "packed, transposed" if turned else "packed"
        return selector.weights(matrix).packed(kind, lambda w: pack_matrix(w.T if turned else w))

    def stored() -> Array:
        weights = selector.weights(matrix)
        return weights.array if turned else weights.packed("transposed", lambda w: contiguous(w.T))

    def phases_of(kernel: Callable[..., Phases], weights: Callable[[], Array]) -> Phases:
        phases: Phases = []
        flat = epilogue.flattened(step.output.shape, out.shape, selector.scratch, phases)
        return phases + kernel(a, weights(), out, flat, selector.scratch)

    able: dict[str, Callable[[], Phases]] = {
        "matmul by columns": lambda: phases_of(kernels.columns_by_matrix, packed),
        "matmul by rows": lambda: phases_of(kernels.rows_by_matrix, packed),
        "weight streaming": lambda: phases_of(stream_weights, stored),
    }
    if not matrix.is_constant or rows not in STREAMED_ROWS:
        del able["weight streaming"]
    first = "matmul by columns" if rows < 16 * selector.threads else "matmul by rows"
    if "weight streaming" in able and suits(rows, k, n):
        first = "weight streaming"
    return selector.choose(step, {first: able.pop(first), **able})


def expert_matmul(step: ExpertMatMulStep, selector: NumpySelector) -> Selected:
    """Select the kernel for products of experts: one expert after the other."""
    a, counts, out = (selector.array(v) for v in (*step.inputs[:2], step.output))
    products: list[Callable[[Array, Array], object]] = []
    for value in step.weights:
        matrix = selector.compressed(value, 1 if step.transpose else 0, multiplied=True)
        if matrix is not None:
            products.append(lambda x, y, matrix=matrix: multiply_compressed(x, matrix, y))
            continue
        array = selector.array(value)
        for weights in array if step.is_stacked else [array]:
            weights = weights.T if step.transpose else weights
            products.append(lambda x, y, weights=weights: np.matmul(x, weights, y))
    return "expert by expert", [[[(kernels.by_expert, (a, counts, products, out))]]]


def attention(step: AttentionStep, selector: NumpySelector) -> Selected:
    """Select the kernel for attention."""
    q, k, v, *rest = (selector.array(x) for x in step.inputs)
    mask, dropped = rest[0] if rest else None, None
    phases: Phases = []
    if step.causal:
        dropped = frozen(~np.tri(q.shape[-2], k.shape[-2], dtype=bool)), -np.inf
    elif mask is not None and mask.dtype == bool:
        kept, mask = mask, None
        dropped = selector.scratch.take(kept.shape, bool), step.dropped
        phases.append([[(np.logical_not, (kept, dropped[0]))]])
    out = selector.array(step.output)
    scales = step.query_scale, step.scale
    parts = heads.attention(q, k, v, mask, dropped, out, scales, selector.scratch)
    return "head by head", [*phases, parts]
