"""Lowering of Interpolate: one resampling per axis, since all its modes are separable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from irload.core.size import hint, is_size
from irload.core.tensor import Array
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ResampleStep, ReshapeStep
from irload.plan.ir.steps.rows import SizedTaps
from irload.plan.lowering.values import all_f32

if TYPE_CHECKING:
    from irload.ops.image.interpolate import Interpolate, Interpolate4
    from irload.ops.image.resize import Resized, Sampling


def interpolate(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower an Interpolate without pads. The axis that grows least is resampled first."""
    from irload.ops.image.interpolate import Interpolate, Interpolate4  # slow to import, and rarely used
    from irload.ops.image.resize import AxisTaps, antialiased

    op, data, known = node.op, inputs[0], [v.constant for v in inputs[1:]]
    if not isinstance(op, Interpolate | Interpolate4) or not all_f32([data, *outputs]):
        return None
    if any(k is None for k in known) or np.any(op.pads(len(data.shape))):
        return None
    jobs, how = _geometry(op, data.shape, [k for k in known if k is not None])
    if how.antialias and how.mode == "linear" and any(is_size(n) for job in jobs for n in (job.size, job.out)):
        return None  # whether an axis shrinks, which changes the filters, depends on symbols
    how = antialiased(jobs, how)
    moving = sorted((j for j in jobs if j.size != j.out), key=lambda job: hint(job.out) / hint(job.size))
    steps: list[Step] = []
    for job in moving:
        shape = (*data.shape[: job.axis], job.out, *data.shape[job.axis + 1 :])
        result = outputs[0] if job is moving[-1] else Value(shape, data.dtype, name=outputs[0].name)
        taps = SizedTaps(job.size, job.out, AxisTaps(job.axis, job.given, how))
        steps.append(ResampleStep([data], [result], axis=job.axis, taps=taps))
        data = result
    return steps or [ReshapeStep([data], outputs)]


def _geometry(
    op: Interpolate | Interpolate4, shape: Sequence[int], known: Sequence[Array]
) -> tuple[list[Resized], Sampling]:
    from irload.ops.image.interpolate import Interpolate, Interpolate11

    if isinstance(op, Interpolate):
        return op.geometry(shape, known[0])
    targets = known[0] if isinstance(op, Interpolate11) or op.shape_calculation_mode == "sizes" else known[1]
    ports = 2 if isinstance(op, Interpolate11) else 3
    return op.geometry(shape, targets, known[ports - 1] if len(known) >= ports else None)
