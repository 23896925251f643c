"""Steps on u8 and i8: converted to floats, computed exactly, and converted back.

Plans multiply in integers only if compiled kernels do. NumPy runs the quantized steps that these do not support.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.ops.convolution.forward import convolve
from irload.plan.backends.numpy.kernels import pooling
from irload.plan.backends.numpy.kernels.elementwise import elementwise_parts
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.program import Step
from irload.plan.ir.steps import ConvStep, MatMulStep, PoolStep


def has_bytes(step: Step) -> bool:
    """True for steps with u8 inputs or outputs. Weights are i8 only if the data are u8."""
    return any(v.dtype == np.uint8 for v in (*step.inputs, *step.outputs))


def product(step: ConvStep | MatMulStep, selector: NumpySelector) -> Selected:
    """Compute a product and its epilogue, for operands of any type."""
    out, (data, weights) = selector.array(step.output), map(selector.array, step.inputs[:2])
    sums = selector.scratch.take(out.shape)
    multiply = _convolve if isinstance(step, ConvStep) else _multiply
    operands = [sums, *map(selector.array, step.operands)]
    parts = elementwise_parts(step.epilogue, operands, out, selector.scratch)
    return "in f64", [[[(multiply, (step, data, weights, sums))]], parts]


def pool(step: PoolStep, selector: NumpySelector) -> Selected:
    """Pool u8."""
    x, out = (np.moveaxis(selector.array(v), 1, -1) for v in (step.inputs[0], step.output))
    wide, result = selector.scratch.take(x.shape), selector.scratch.take(out.shape)
    phases = pooling.pool(step.kind, wide, result, step.windows, step.divisor, selector.scratch)
    first, last = (np.copyto, (wide, x)), (np.copyto, (out, result, "unsafe"))
    return "separable", [[[first]], *phases, [[last]]]


def _wide(step: ConvStep | MatMulStep, data: Array, weights: Array) -> tuple[Array, Array]:
    zero_point = 0 if step.integers is None else step.integers.zero_point
    return data.astype(np.float64) - zero_point, weights.astype(np.float64)


def _convolve(step: ConvStep, data: Array, weights: Array, out: Array) -> None:
    pads = list(zip(step.pads_begin, step.pads_end, strict=True))
    sums = convolve(*_wide(step, data, weights), step.strides, step.dilations, pads)
    out[...] = sums[tuple(map(slice, out.shape))]


def _multiply(step: MatMulStep, data: Array, weights: Array, out: Array) -> None:
    a, b = _wide(step, data, weights)
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    out[...] = a @ (b.swapaxes(-1, -2) if step.transpose_b else b)
