"""Subnormal weights of products become zero: Conv(x, w) → Conv(x, w without them). Likewise MatMul, and their biases.

Pruned networks hold such numbers, below 2⁻¹²⁶ in f32, and processors take a hundred times as long for them: one in a
hundred weights made a convolution seventeen times slower. OpenVINO's CPU plugin takes those of all constants as zero.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Conv, ConvTranspose, MatMul

_CHUNK = 1 << 16
"""Elements that are looked at together: they stay in the cache."""


def drop_subnormals(program: Program) -> None:
    """Have products take constants without subnormal numbers, where nothing else takes them."""
    taken: set[Value] = set()
    others = set(program.outputs)
    for step in program.steps:
        found = set(_weights_and_biases(step))
        taken |= found
        others.update(v for v in step.inputs if v not in found)
    for value in taken - others:
        if value.source is not None and value.dtype == np.float32:
            value.source = value.source.without(without_subnormals)


def _weights_and_biases(step: Step) -> list[Value]:
    """What a product multiplies, and what its epilogue adds and does nothing else with."""
    if isinstance(step, ConvTranspose):
        return step.inputs
    if not isinstance(step, Conv | MatMul):
        return []
    scaled = {a for i in step.epilogue.instructions if i.opcode != "add" for a in i.args}
    return [v for k, v in enumerate(step.inputs) if k < step.OWN or k + 1 - step.OWN not in scaled]


def without_subnormals(array: Array) -> Array:
    """f32 numbers with those between −2⁻¹²⁶ and 2⁻¹²⁶ as 0; the array itself where there are none."""
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    kept = np.empty(min(bits.size, _CHUNK), np.uint32)
    for k in range(0, bits.size, _CHUNK):
        chunk = bits[k : k + _CHUNK]
        if _places(chunk, kept[: chunk.size]).min() < _SUBNORMAL:
            return np.where(_places(bits, np.empty_like(bits)).reshape(array.shape) < _SUBNORMAL, np.float32(0), array)
    return array


_SUBNORMAL = (1 << 24) - 2


def _places(bits: Array, out: Array) -> Array:
    """Of the numbers with these bits: below _SUBNORMAL for those that are subnormal, and for nothing else."""
    np.add(bits, bits, out=out)  # without the sign they are 1 to 2²³ − 1, zero is 0
    return np.subtract(out, 1, out=out)
