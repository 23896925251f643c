"""What the kernels ask of memory: the layouts and borders they are made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.channels_last import layouts
from irload.plan.backends.numpy.selection.convolutions import writes_lines
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import Conv
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests


def requests(program: Program, steps: Sequence[Step]) -> MemoryRequests:
    """The requests of these steps.

    Writing in place, and into slices of a Concat, is not asked for: on no real model does it win 5 %, as NumPy's calls
    on memory that has gaps take longer.
    """
    found = layouts(program, steps)
    return MemoryRequests({**found, **_borders(program, steps, found)})


def _borders(program: Program, steps: Sequence[Step], found: dict[Value, Layout]) -> dict[Value, Layout]:
    """Data that a 1×1 convolution makes for a depthwise one gets a border as wide as the padding of that.

    So the depthwise kernel reads windows where they lie; other kernels copy their data into a padded buffer.
    """
    producers = program.producers()
    borders: dict[Value, Layout] = {}
    for step in steps:
        if not isinstance(step, Conv) or len(step.strides) != 2 or step.inputs[1].shape[1:3] != (1, 1):
            continue
        value = step.inputs[0]
        producer = producers.get(value)
        if value in found and isinstance(producer, Conv) and writes_lines(producer):
            border = ((0, 0), (0, 0), *zip(step.pads_begin, step.pads_end, strict=True))
            if any(n for pair in border for n in pair):
                borders[value] = replace(found[value], border=border)
    return borders
