"""Lowering of FakeQuantize to one expression, with as few instructions as its bounds allow."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ElementwiseStep
from irload.plan.lowering.values import all_f32


def fake_quantize(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower FakeQuantize with constant bounds: clamp, scale to levels, round, scale back.

    The order of operations before the rounding is preserved, because a difference in the last bit changes how a tie
    is rounded.
    """
    bounds = [v.constant for v in inputs[1:] if v.constant is not None]
    if len(bounds) < 4 or not all_f32([*inputs, *outputs]):
        return None
    if node.op.attributes["auto_broadcast"] == "pdpd":
        return None
    rank = len(outputs[0].shape)
    low, high, out_low, out_high = (b.reshape(b.shape[max(b.ndim - rank, 0) :]) for b in bounds)
    if np.any(high <= low):
        return None  # a step function, or swapped bounds
    steps = np.float32((node.op.attributes["levels"] - 1) % 2**64)
    if not steps:
        return None  # infinite or NaN bounds
    chain = _Chain(inputs[0])
    if low.size == high.size == 1:
        chain.add("clamp", float(low.reshape(-1)[0]), float(high.reshape(-1)[0]))
    else:
        chain.operand("maximum", low)
        chain.operand("minimum", high)
    if np.any(low):
        chain.operand("subtract", low)
    chain.operand("divide", high - low)
    chain.add("multiply_number", float(steps))
    chain.add("round")
    chain.operand("multiply", (out_high - out_low) / steps)
    if np.any(out_low):
        chain.operand("add", out_low)
    return chain.map(outputs)


class _Chain:
    """A chain of instructions: each reads the result of the previous one, and numbers or a constant operand."""

    def __init__(self, x: Value) -> None:
        self.operands = [x]
        self.links: list[tuple[str, int | None, tuple[float, ...]]] = []

    def add(self, function: str, *numbers: float) -> None:
        """Append a function of the last result."""
        self.links.append((function, None, numbers))

    def operand(self, function: str, array: Array) -> None:
        """Append a function of the last result and a constant, which becomes a number if it has one element."""
        if array.size == 1:
            number = float(array.reshape(-1)[0])
            self.add(
                "add_number" if function == "subtract" else f"{function}_number",
                -number if function == "subtract" else number,
            )
        else:
            self.links.append((function, len(self.operands), ()))
            self.operands.append(Value.of(np.asarray(array, np.float32)))

    def map(self, outputs: list[Value]) -> ElementwiseStep:
        """Return the step."""
        count = len(self.operands)
        instructions = [
            Instruction(function, (last,) if other is None else (last, other), numbers)
            for last, (function, other, numbers) in zip(
                (0, *range(count, count + len(self.links))), self.links, strict=False
            )
        ]
        return ElementwiseStep(self.operands, outputs, expression=Expression(count, tuple(instructions)))
