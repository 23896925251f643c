"""Layouts: [N,C,X…] values around convolutions → channels innermost, so that windows are long runs of memory.

Views count as what they look at: a Transpose of [N,X…,C] lies with its channels innermost already.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import (
    Compute,
    Concat,
    Conv,
    ConvTranspose,
    Elementwise,
    GroupNormalize,
    Pool,
    Resample,
    ViewOp,
)
from irload.plan.memory.planner import blank


def choose_layouts(program: Program) -> None:
    """Mark the values that Convs and Pools take and make, and what elementwise steps and joins hand on."""
    views: dict[Value, Array] = {}

    def innermost(value: Value) -> bool:
        """True where the channels of a value lie innermost, be it as a view."""
        return value.channels_last or (value in views and _lies_last(views[value]))

    for value in program.inputs:
        if any(isinstance(s, Conv | ConvTranspose | Pool) for s in program.consumers(value)):
            value.channels_last = _can(value)
    for step in program.steps:
        if isinstance(step, Conv | ConvTranspose | Pool):
            step.output.channels_last = _can(step.output)
        elif isinstance(step, Elementwise | Concat):
            alike = [v for v in step.inputs if v.shape == step.output.shape or isinstance(step, Concat)]
            step.output.channels_last = _can(step.output) and any(innermost(v) for v in alike)
        elif isinstance(step, Resample | GroupNormalize):
            step.output.channels_last = innermost(step.inputs[0]) and _can(step.output)
        elif isinstance(step, Compute):
            for value in step.outputs:
                taken = any(isinstance(s, Conv | ConvTranspose | Pool) for s in program.consumers(value))
                value.channels_last = taken and _can(value)
        elif isinstance(step, ViewOp) and not step.inputs[0].is_constant:
            source = step.inputs[0]
            try:
                views[step.output] = step.look(views[source] if source in views else blank(source))
            except ValueError:
                continue  # a copy, which lies as its shape says


def _can(value: Value) -> bool:
    return not value.is_constant and 3 <= len(value.shape) <= 5


def _lies_last(view: Array) -> bool:
    """True for [N,C,X…] views of dense [N,X…,C] memory that are not dense as they are, too."""
    return 3 <= view.ndim <= 5 and np.moveaxis(view, 1, -1).flags.c_contiguous and not view.flags.c_contiguous
