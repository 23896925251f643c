"""Match ScatterElementsUpdate at positions from TopKs, as in expert routers, which keep a few weights per token.

The positions are in range, so the Scatter step does not check them.
"""

from __future__ import annotations

import numpy as np

from irload.core.shape import normalize_axis
from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.steps import ComputeStep, ConcatStep, ScatterStep, TopKStep


def recognise_routing(program: Program) -> None:
    """Replace scatters at the positions of one or more TopKs along the same axis."""
    producers = program.producers()
    program.rewrite(ComputeStep, lambda step: _scatter(step, producers))


def _scatter(step: ComputeStep, producers: Producers) -> list[Step] | None:
    """Return the Scatter, None for any other step."""
    if step.op.type != "ScatterElementsUpdate":
        return None
    data, positions, updates, axis = step.inputs
    convert = producers.get(positions)
    if isinstance(convert, ComputeStep) and convert.op.type == "Convert" and positions.dtype.kind == "i":
        positions = convert.inputs[0]
    rankings = _rankings(positions, producers)
    if not rankings or axis.constant is None:
        return None
    along = normalize_axis(int(axis.constant.reshape(())), len(data.shape))
    others = [tuple(n for k, n in enumerate(v.shape) if k != along) for v in (data, updates)]
    if (
        step.op.attributes.get("reduction", "none") != "none"
        or any(v.dtype != np.float32 for v in (data, updates))
        or any(r.axis != along or r.inputs[0].shape[along] > data.shape[along] for r in rankings)
        or others[0] != others[1]
        or updates.shape != positions.shape
    ):
        return None
    return [ScatterStep([data, positions, updates], step.outputs, origin=step.origin, axis=along)]


def _rankings(positions: Value, producers: Producers) -> list[TopKStep]:
    """Return the TopKs whose positions a value has, one after the other; empty for any other value."""
    step = producers.get(positions)
    joined = step.inputs if isinstance(step, ConcatStep) else [positions]
    rankings = [r for v in joined if isinstance(r := producers.get(v), TopKStep) and v is r.outputs[1]]
    return rankings if len(rankings) == len(joined) else []
