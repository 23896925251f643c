"""Builds the step of a chain of functions: each has the previous result, and numbers or a value, as arguments."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ElementwiseStep


class InstructionChain:
    """A sequence of instructions; the first argument of each is the result of the previous one."""

    def __init__(self, x: Value) -> None:
        self._inputs = [x]
        self._links: list[tuple[Instruction, int | None]] = []

    def append(self, opcode: str, *numbers: float, dtype: np.dtype[np.generic] | None = None) -> None:
        """Append a function of one argument."""
        self._links.append((Instruction(opcode, (0,), numbers, dtype), None))

    def append_constant(self, opcode: str, array: Array) -> None:
        """Append a function of the last result and a constant, which becomes a number if it has one element."""
        if array.size == 1:
            number = float(array.reshape(-1)[0])
            opcode, number = ("add", -number) if opcode == "subtract" else (opcode, number)
            self.append(f"{opcode}_number", number)
            return
        self.append_value(opcode, Value.of(np.asarray(array, np.float32)))

    def append_value(self, opcode: str, value: Value) -> None:
        """Append a function of the last result and a value."""
        if value not in self._inputs:
            self._inputs.append(value)
        self._links.append((Instruction(opcode, (0, 0)), self._inputs.index(value)))

    def step(self, output: Value) -> ElementwiseStep:
        """Return the step that computes the chain."""
        count, instructions = len(self._inputs), list[Instruction]()
        for k, (link, operand) in enumerate(self._links):
            last = count + k - 1 if k else 0
            arguments = (last,) if operand is None else (last, operand)
            instructions.append(Instruction(link.opcode, arguments, link.numbers, link.dtype))
        return ElementwiseStep(self._inputs, [output], expression=Expression(count, tuple(instructions)))
