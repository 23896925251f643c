"""Quantized values: u8 with scale and offset, and the steps that convert from and to f32."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ElementwiseStep
from irload.record import record

U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)


@record(eq=False)
class Quantized:
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

    def alike(self, other: Quantized) -> bool:
        """True if both have the same scale and offset."""
        return np.array_equal(self.scale, other.scale) and np.array_equal(self.low, other.low)

    def of(self, value: Value) -> Quantized:
        """Return another u8 value with the same scale and offset."""
        return Quantized(value, self.scale, self.low)

    def to_f32(self, output: Value) -> ElementwiseStep:
        """Return the step that dequantizes to f32."""
        chain = Chain(self.value)
        if self.value.dtype != F32:  # the mean of quantized data is f32 already
            chain.append("convert", dtype=F32)
        chain.by("multiply", self.scale)
        if np.any(self.low):
            chain.by("add", self.low)
        return chain.step(output)


class Chain:
    """A sequence of instructions; the first argument of each is the result of the previous one."""

    def __init__(self, x: Value) -> None:
        self._inputs = [x]
        self._links: list[tuple[Instruction, int | None]] = []

    def append(self, opcode: str, *numbers: float, dtype: np.dtype[np.generic] | None = None) -> None:
        """Append a function of one argument."""
        self._links.append((Instruction(opcode, (0,), numbers, dtype), None))

    def by(self, opcode: str, array: Array) -> None:
        """Append a function of the last result and a constant."""
        if array.size == 1:
            self.append(f"{opcode}_number", float(array.reshape(-1)[0]))
            return
        self._links.append((Instruction(opcode, (0, 0)), len(self._inputs)))
        self._inputs.append(Value.of(np.asarray(array, np.float32)))

    def step(self, output: Value) -> ElementwiseStep:
        """Return the step that computes the chain."""
        count, instructions = len(self._inputs), list[Instruction]()
        for k, (link, operand) in enumerate(self._links):
            last = count + k - 1 if k else 0
            args = (last,) if operand is None else (last, operand)
            instructions.append(Instruction(link.opcode, args, link.numbers, link.dtype))
        return ElementwiseStep(self._inputs, [output], expression=Expression(count, tuple(instructions)))


def quantizing(x: Value, low: Array, scale: Array, levels: int, output: Value) -> ElementwiseStep:
    """Return the step that quantizes to u8: round((x − low) / scale), clamped to 0…levels − 1."""
    chain = Chain(x)
    chain.by("multiply", np.float32(1) / scale)
    if np.any(low):
        chain.by("add", -low / scale)
    chain.append("clamp", 0.0, float(levels - 1))
    chain.append("round")
    chain.append("convert", dtype=U8)
    return chain.step(output)
