"""Channels-last layouts around convolutions, [N,X…,C] for a logical [N,C,X…], so that windows are contiguous runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.strides import Strided
from irload.plan.memory.layout import PLANAR, Layout, channels_last
from irload.plan.memory.memory import Memory


def layouts(program: Program, steps: Sequence[Step], copied: Collection[Value] = ()) -> dict[Value, Layout]:
    """Return the values to store channels-last.

    These are the results of convolutions and poolings, the results of elementwise and similar steps on them, values
    that can be computed in any axis order and are read by a convolution that requires channels-last data, and copied
    views whose readers prefer this layout. `copied`: other values that are copied in any axis order.
    """
    requested: dict[Value, Layout] = {}
    views: dict[Value, Strided] = {}
    preferred = _preferred(program)

    def request(value: Value) -> None:
        if not value.is_constant and 3 <= len(value.shape) <= 5:
            requested[value] = channels_last(len(value.shape))

    def strided(value: Value) -> Strided:
        return views[value] if value in views else requested.get(value, PLANAR).strided(value.shape)

    for value in copied:
        if value in preferred:
            request(value)
    for step in steps:
        kept = step.prefers_channels_last or any(v in requested for v in step.layout_sources)
        view = None if step.view is None else step.view.of(strided(step.inputs[0]))
        if view is not None:
            views[step.output] = view
        elif step.view is not None and step.output in preferred:
            request(step.output)
        for value in step.outputs:
            if kept or (step.adapts_layout and any(s.needs_channels_last for s in program.consumers(value))):
                request(value)
    return requested


def _preferred(program: Program) -> set[Value]:
    """The data of convolutions and poolings, and the inputs of elementwise steps that compute them."""
    preferred: set[Value] = set()
    for step in reversed(program.steps):
        if step.prefers_channels_last:
            preferred.add(step.inputs[0])
        elif step.adapts_layout and any(v in preferred for v in step.outputs):
            preferred.update(step.inputs)
    return preferred


def is_channels_last(memory: Memory, value: Value) -> bool:
    """True for values requested channels-last, except views of them."""
    return memory.layout(value).order == channels_last(len(value.shape)).order and not memory.is_view(value)
