"""Layouts: [N,C,X…] values around convolutions → channels innermost, so that windows are long runs of memory."""

from __future__ import annotations

from irload.plan.program import Program, Value
from irload.plan.steps import Compute, GroupNormalize, Join, Map, Pool, Resample, TransposedWindow, Window


def choose_layouts(program: Program) -> None:
    """Mark the values that Windows and Pools take and make, and what elementwise steps and joins hand on."""
    consumers = program.consumers()
    for value in program.inputs:
        if any(isinstance(s, Window | TransposedWindow | Pool) for s in consumers.get(value, ())):
            value.channels_last = _can(value)
    for step in program.steps:
        if isinstance(step, Window | TransposedWindow | Pool):
            step.output.channels_last = _can(step.output)
        elif isinstance(step, Map | Join):
            alike = [v for v in step.inputs if v.shape == step.output.shape or isinstance(step, Join)]
            step.output.channels_last = _can(step.output) and any(v.channels_last for v in alike)
        elif isinstance(step, Resample | GroupNormalize):
            step.output.channels_last = step.inputs[0].channels_last and _can(step.output)
        elif isinstance(step, Compute):
            for value in step.outputs:
                taken = any(isinstance(s, Window | TransposedWindow | Pool) for s in consumers.get(value, ()))
                value.channels_last = taken and _can(value)


def _can(value: Value) -> bool:
    return value.constant is None and 3 <= len(value.shape) <= 5
