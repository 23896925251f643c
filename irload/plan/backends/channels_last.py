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
    Normalize,
    Pool,
    Resample,
    Sample,
)
from irload.plan.memory.layout import Layout, channels_last
from irload.plan.memory.memory import Memory


def layouts(program: Program, steps: Sequence[Step], *, inputs: bool = True) -> dict[Value, Layout]:
    """The values that lie with their channels innermost.

    Those that convolutions and poolings make, and what elementwise steps and the like make of them; with `inputs` also
    what they take from the caller or from operations that compute themselves.
    """
    found: dict[Value, Layout] = {}

    def request(value: Value, *, wanted: bool = True) -> None:
        if wanted and not value.is_constant and 3 <= len(value.shape) <= 5:
            found[value] = channels_last(len(value.shape))

    def is_convolved(value: Value) -> bool:
        return any(isinstance(s, Conv | ConvTranspose | Pool) for s in program.consumers(value))

    def is_filtered(value: Value) -> bool:
        """True where a depthwise convolution takes it, which has no use for maps that lie one behind the other."""
        convolutions = (s for s in program.consumers(value) if isinstance(s, Conv))
        return any(s.groups > 1 and s.inputs[1].shape[1:3] == (1, 1) for s in convolutions)

    for value in program.inputs:
        request(value, wanted=inputs and is_convolved(value))
    for step in steps:
        if isinstance(step, Conv | ConvTranspose | Pool):
            request(step.output)
        elif isinstance(step, Elementwise | Concat):
            alike = [v for v in step.inputs if v.shape == step.output.shape or isinstance(step, Concat)]
            request(step.output, wanted=any(v in found for v in alike) or is_filtered(step.output))
        elif isinstance(step, Resample | GroupNormalize) or (isinstance(step, Normalize) and 1 not in step.axes):
            request(step.output, wanted=step.inputs[0] in found)
        elif isinstance(step, Sample):
            request(step.output, wanted=step.inputs[0] in found or (inputs and is_convolved(step.output)))
        elif isinstance(step, Compute):
            for value in step.outputs:
                request(value, wanted=inputs and is_convolved(value))
    return found


def is_channels_last(memory: Memory, value: Value) -> bool:
    """True for values that were asked to lie so, views of them aside."""
    return memory.layout(value).order == channels_last(len(value.shape)).order and not memory.is_view(value)
