"""Lowering of TopK."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import TopKStep
from irload.plan.lowering.values import all_f32


def top_k(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a TopK of f32. The number of elements, k, is the length of the outputs."""
    x, known = inputs[0], node.op.attributes
    if not all_f32([x]) or not x.size:
        return None
    return TopKStep(
        [x],
        outputs,
        axis=known["axis"] % len(x.shape),
        largest=known["mode"] == "max",
        by_position=known["sort"] == "index",
    )
