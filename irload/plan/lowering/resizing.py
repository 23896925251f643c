"""Interpolate: one resampling an axis, as all its modes are separable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Resample, Reshape
from irload.plan.lowering.lower import all_f32, lowers

if TYPE_CHECKING:
    from irload.ops.image.interpolate import Interpolate, Interpolate4
    from irload.ops.image.resize import Resized, Sampling

LARGEST = 1 << 22
"""Elements of a matrix beyond which it is not worth its memory."""


@lowers("Interpolate")
def interpolate(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """One axis after the other, the one that grows least first. Pads and antialiasing are left to the operation."""
    from irload.ops.image.interpolate import Interpolate, Interpolate4  # heavy, and few models resample
    from irload.ops.image.resize import axis_taps

    op, data, told = node.op, inputs[0], [v.constant for v in inputs[1:]]
    if not isinstance(op, Interpolate | Interpolate4) or not all_f32([data, *outputs]) or not outputs[0].size:
        return None
    if any(t is None for t in told) or np.any(op.pads(len(data.shape))) or op.antialias:
        return None
    jobs, how = _geometry(op, data.shape, [t for t in told if t is not None])
    moving = sorted((j for j in jobs if j.size != j.out), key=lambda job: job.out / job.size)
    if any(job.size * job.out > LARGEST for job in moving):
        return None
    steps: list[Step] = []
    for job in moving:
        taps = axis_taps(job, how)
        shape = (*data.shape[: job.axis], job.out, *data.shape[job.axis + 1 :])
        result = outputs[0] if job is moving[-1] else Value(shape, data.dtype, name=outputs[0].name)
        steps.append(Resample([data], [result], axis=job.axis, index=taps.index, weight=taps.weight))
        data = result
    return steps or [Reshape([data], outputs)]


def _geometry(
    op: Interpolate | Interpolate4, shape: Sequence[int], told: Sequence[Array]
) -> tuple[list[Resized], Sampling]:
    from irload.ops.image.interpolate import Interpolate, Interpolate11

    if isinstance(op, Interpolate):
        return op.geometry(shape, told[0])
    targets = told[0] if isinstance(op, Interpolate11) or op.shape_calculation_mode == "sizes" else told[1]
    ports = 2 if isinstance(op, Interpolate11) else 3
    return op.geometry(shape, targets, told[ports - 1] if len(told) >= ports else None)
