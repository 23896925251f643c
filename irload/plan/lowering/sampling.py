"""Lowering of GridSample."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import SampleStep
from irload.plan.lowering.values import all_f32


def grid_sample(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower a GridSample of nonempty f32 data and grid."""
    if not all_f32(inputs) or not all(v.size for v in inputs):
        return None
    known = node.op.attributes
    return SampleStep(
        inputs, outputs, mode=known["mode"], padding=known["padding_mode"], align_corners=known["align_corners"]
    )
