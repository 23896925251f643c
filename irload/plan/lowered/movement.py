"""What only moves: views, permutations, concatenation."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.lowering import lowers
from irload.plan.program import Step, Value
from irload.plan.steps import Join, Permute, View


@lowers("Reshape", "Squeeze", "Unsqueeze", "Identity")
def view(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """What changes the shape alone."""
    return View(inputs[:1], outputs) if inputs[0].dtype != object else None


@lowers("Transpose")
def permute(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Transpose by a constant order."""
    order = inputs[1].constant
    if order is None or inputs[0].dtype == object:
        return None
    rank = len(inputs[0].shape)
    axes = tuple(int(k) % rank for k in order.tolist()) if order.size else tuple(reversed(range(rank)))
    return Permute(inputs[:1], outputs, order=axes)


@lowers("Concat")
def join(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Concat."""
    if inputs[0].dtype == object:
        return None
    return Join(inputs, outputs, axis=int(node.op.attributes["axis"]) % len(outputs[0].shape))
