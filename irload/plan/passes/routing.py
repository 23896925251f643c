"""Match ScatterElementsUpdate at positions from a TopK, as in expert routers, which keep a few weights per token.

The positions are in range, so the Scatter step does not check them.
"""

from __future__ import annotations

import numpy as np

from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ComputeStep, ScatterStep, TopKStep


def recognise_routing(program: Program) -> None:
    """Replace scatters at the positions of a TopK along the same axis."""
    producers = program.producers()
    for step in program.steps:
        if isinstance(step, ComputeStep) and step.op.type == "ScatterElementsUpdate":
            scatter = _scatter(step, producers)
            if scatter is not None:
                program.replace([step], [scatter])


def _scatter(step: ComputeStep, producers: dict[Value, Step]) -> ScatterStep | None:
    data, positions, updates, axis = step.inputs
    convert = producers.get(positions)
    if isinstance(convert, ComputeStep) and convert.op.type == "Convert" and positions.dtype.kind == "i":
        positions = convert.inputs[0]
    ranking = producers.get(positions)
    if not isinstance(ranking, TopKStep) or positions is not ranking.outputs[1] or axis.constant is None:
        return None
    along = int(axis.constant.reshape(())) % len(data.shape)
    others = [tuple(n for k, n in enumerate(v.shape) if k != along) for v in (data, updates)]
    if (
        step.op.attributes.get("reduction", "none") != "none"
        or any(v.dtype != np.float32 for v in (data, updates))
        or along != ranking.axis
        or ranking.inputs[0].shape[along] > data.shape[along]
        or others[0] != others[1]
        or updates.shape != positions.shape
    ):
        return None
    return ScatterStep([data, positions, updates], step.outputs, origin=step.origin, axis=along)
