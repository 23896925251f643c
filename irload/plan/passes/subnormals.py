"""Flush subnormal weights and biases of Conv and MatMul to zero.

Pruned networks contain f32 numbers below 2⁻¹²⁶, which processors handle a hundred times more slowly: with one
subnormal in a hundred weights, a convolution took seventeen times as long. OpenVINO's CPU plugin flushes them in all
constants.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ProductStep

_CHUNK = 1 << 16
"""Elements checked at a time, so that they stay in cache."""


def drop_subnormals(program: Program) -> None:
    """Flush the constant weights and biases of all products, unless another step reads the same constant."""
    candidates: set[Value] = set()
    others = set(program.outputs)
    for step in program.steps:
        operands = set(_weights_and_biases(step))
        candidates |= operands
        others.update(v for v in step.inputs if v not in operands)
    for value in candidates - others:
        if value.source is not None and value.dtype == np.float32:
            value.source = value.source.corrected(without_subnormals)


def _weights_and_biases(step: Step) -> list[Value]:
    """Return the two operands of a product, and the epilogue's operands that are only added."""
    if not isinstance(step, ProductStep):
        return []
    scaled = {a for i in step.elementwise_part.instructions if i.opcode != "add" for a in i.args}
    return [v for k, v in enumerate(step.inputs) if k < 2 or k - 1 not in scaled]


def without_subnormals(array: Array) -> Array:
    """Flush f32 numbers between −2⁻¹²⁶ and 2⁻¹²⁶ to 0; returns the array itself if it has no subnormal numbers."""
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    kept = np.empty(min(bits.size, _CHUNK), np.uint32)
    for k in range(0, bits.size, _CHUNK):
        chunk = bits[k : k + _CHUNK]
        if _magnitudes(chunk, kept[: chunk.size]).min() < _SUBNORMAL:
            return np.where(
                _magnitudes(bits, np.empty_like(bits)).reshape(array.shape) < _SUBNORMAL, np.float32(0), array
            )
    return array


_SUBNORMAL = (1 << 24) - 2


def _magnitudes(bits: Array, out: Array) -> Array:
    """Write one integer per f32 number to `out`; it is below _SUBNORMAL if and only if the number is subnormal."""
    np.add(bits, bits, out=out)  # drops the sign bit; subtracting 1 then turns zero into the largest integer
    return np.subtract(out, 1, out=out)
