"""Channels-last layouts around convolutions, [N,X…,C] for a logical [N,C,X…], so that windows are contiguous runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from irload.plan.ir.program import Program, Step, Value
from irload.plan.memory.layout import Layout, channels_last
from irload.plan.memory.memory import Memory


def layouts(program: Program, steps: Sequence[Step], copied: Collection[Value] = ()) -> dict[Value, Layout]:
    """Return the values to store channels-last.

    These are the results of convolutions and poolings, the results of elementwise and similar steps on them, and values
    that can be computed in any axis order and are read by a convolution that requires channels-last data. `copied`:
    values that are copied into their buffers in any axis order; they are stored as their readers prefer.
    """
    requested: dict[Value, Layout] = {}

    def request(value: Value) -> None:
        if not value.is_constant and 3 <= len(value.shape) <= 5:
            requested[value] = channels_last(len(value.shape))

    for value in copied:
        if any(s.prefers_channels_last for s in program.consumers(value)):
            request(value)
    for step in steps:
        kept = step.prefers_channels_last or any(v in requested for v in step.layout_sources)
        for value in step.outputs:
            if kept or (step.adapts_layout and any(s.needs_channels_last for s in program.consumers(value))):
                request(value)
    return requested


def is_channels_last(memory: Memory, value: Value) -> bool:
    """True for values requested channels-last, except views of them."""
    return memory.layout(value).order == channels_last(len(value.shape)).order and not memory.is_view(value)
