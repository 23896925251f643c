"""Channels innermost around convolutions, [N,X…,C] for a logical [N,C,X…], so that windows are long runs of memory."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.ir.program import Program, Step, Value
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
from irload.plan.ir.strides import Strided
from irload.plan.memory.layout import Layout, channels_last
from irload.plan.memory.memory import Memory


def layouts(program: Program, steps: Sequence[Step]) -> dict[Value, Layout]:
    """The values that lie with their channels innermost.

    Those that convolutions and poolings take and make, and what elementwise steps and the like make of them. Views
    count as what they look at: a Transpose of [N,X…,C] lies with its channels innermost already.
    """
    found: dict[Value, Layout] = {}
    views: dict[Value, Strided] = {}

    def is_innermost(value: Value) -> bool:
        return value in found or (value in views and _lies_last(views[value]))

    def request(value: Value, *, wanted: bool = True) -> None:
        if wanted and not value.is_constant and 3 <= len(value.shape) <= 5:
            found[value] = channels_last(len(value.shape))

    def is_convolved(value: Value) -> bool:
        return any(isinstance(s, Conv | ConvTranspose | Pool) for s in program.consumers(value))

    for value in program.inputs:
        request(value, wanted=is_convolved(value))
    for step in steps:
        if isinstance(step, Conv | ConvTranspose | Pool):
            request(step.output)
        elif isinstance(step, Elementwise | Concat):
            alike = [v for v in step.inputs if v.shape == step.output.shape or isinstance(step, Concat)]
            request(step.output, wanted=any(map(is_innermost, alike)))
        elif isinstance(step, Resample | GroupNormalize):
            request(step.output, wanted=is_innermost(step.inputs[0]))
        elif isinstance(step, Compute):
            for value in step.outputs:
                request(value, wanted=is_convolved(value))
        elif isinstance(step, ViewOp) and not step.inputs[0].is_constant:
            source = step.inputs[0]
            own = found[source].strided(source.shape) if source in found else Strided.dense(source.shape)
            view = step.view.of(views.get(source, own))
            if view is not None:  # else a copy, which is planar
                views[step.output] = view
    return found


def is_channels_last(memory: Memory, value: Value) -> bool:
    """True for values that were asked to lie so, views of them aside."""
    return memory.layout(value).order == channels_last(len(value.shape)).order and not memory.is_view(value)


def _lies_last(view: Strided) -> bool:
    """True for [N,C,X…] views of dense [N,X…,C] memory that are not dense as they are, too."""
    if not 3 <= len(view.shape) <= 5 or view.is_dense:
        return False
    order = channels_last(len(view.shape)).order
    return Strided(tuple(view.shape[k] for k in order), tuple(view.strides[k] for k in order)).is_dense
