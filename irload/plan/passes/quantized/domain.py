"""Quantized values: u8 with scale and offset, and the steps that convert from and to f32."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.instruction_chain import InstructionChain
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ElementwiseStep
from irload.record import record

U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)


@record(eq=False)
class QuantizedValue:
    """A u8 value q that represents q · `scale` + `low`; scale and offset broadcast to q."""

    value: Value
    scale: Array
    low: Array

    @property
    def zero_points(self) -> Array:
        """The zero points as a vector: a single one, or one per channel. They may be fractional."""
        return (-self.low / self.scale).reshape(-1)

    @property
    def is_uniform(self) -> bool:
        """True if all channels have the same scale and offset."""
        return self.scale.size == self.low.size == 1

    def alike(self, other: QuantizedValue) -> bool:
        """True if both have the same scale and offset."""
        return np.array_equal(self.scale, other.scale) and np.array_equal(self.low, other.low)

    def of(self, value: Value) -> QuantizedValue:
        """Return another u8 value with the same scale and offset."""
        return QuantizedValue(value, self.scale, self.low)

    def to_f32(self, output: Value) -> ElementwiseStep:
        """Return the step that dequantizes to f32."""
        chain = InstructionChain(self.value)
        if self.value.dtype != F32:  # the mean of quantized data is f32 already
            chain.append("convert", dtype=F32)
        chain.append_constant("multiply", self.scale)
        if np.any(self.low):
            chain.append_constant("add", self.low)
        return chain.step(output)


def quantizing(x: Value, factor: Array, term: Array, levels: int, output: Value) -> ElementwiseStep:
    """Return the step that quantizes to u8: round(x · factor + term), clamped to 0…levels − 1."""
    chain = InstructionChain(x)
    chain.append_constant("multiply", factor)
    if np.any(term):
        chain.append_constant("add", term)
    chain.append("clamp", 0.0, float(levels - 1))
    chain.append("round")
    chain.append("convert", dtype=U8)
    return chain.step(output)
