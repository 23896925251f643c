"""Lowerings of FakeQuantize and FakeConvert to one expression. That of FakeQuantize is as short as its bounds allow."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.expression import THRESHOLD
from irload.plan.ir.instruction_chain import InstructionChain
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
    if np.all(low == high):
        return _threshold(inputs[0], low, out_low, out_high, outputs[0])
    if np.any(high <= low):
        return None  # swapped bounds
    steps = np.float32((node.op.attributes["levels"] - 1) % 2**64)
    if not steps:
        return None  # infinite or NaN bounds
    chain = InstructionChain(inputs[0])
    if low.size == high.size == 1:
        chain.append("clamp", float(low.reshape(-1)[0]), float(high.reshape(-1)[0]))
    else:
        chain.append_constant("maximum", low)
        chain.append_constant("minimum", high)
    if np.any(low):
        chain.append_constant("subtract", low)
    chain.append_constant("divide", high - low)
    chain.append("multiply_number", float(steps))
    chain.append("round")
    chain.append_constant("multiply", (out_high - out_low) / steps)
    if np.any(out_low):
        chain.append_constant("add", out_low)
    return chain.step(outputs[0])


def fake_convert(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower FakeConvert: (round(x · scale − shift) + shift) / scale."""
    if not all_f32([*inputs, *outputs]):
        return None
    x, scale, *shift = inputs
    chain = InstructionChain(x)
    chain.append_value("multiply", scale)
    for value in shift:
        chain.append_value("subtract", value)
    chain.append(f"round_{node.op.attributes['destination_type']}")
    for value in shift:
        chain.append_value("add", value)
    chain.append_value("divide", scale)
    return chain.step(outputs[0])


def _threshold(x: Value, bound: Array, low: Array, high: Array, output: Value) -> ElementwiseStep:
    """Return the step of a FakeQuantize whose input bounds are equal, as in binary networks."""
    return ElementwiseStep([x, *(Value.of(a, output.name) for a in (bound, low, high))], [output], expression=THRESHOLD)
