"""Memory requests of the kernels: layouts and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.channels_last import layouts
from irload.plan.backends.numpy.selection.convolutions import writes_lines
from irload.plan.backends.numpy.selection.table import TABLE
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ConvStep
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests


def requests(program: Program, steps: Sequence[Step]) -> MemoryRequests:
    """Return the requests of these steps."""
    copied = [v for s in steps if TABLE.rows[type(s)].copies for v in s.outputs]
    unpadded = layouts(program, steps, (*program.inputs, *copied))
    return MemoryRequests({**unpadded, **_borders(program, steps, unpadded)})


def _borders(program: Program, steps: Sequence[Step], unpadded: dict[Value, Layout]) -> dict[Value, Layout]:
    """Request padding for the result of a 1×1 convolution that feeds a depthwise one.

    The depthwise kernel then reads windows in place; other kernels copy their data into a padded buffer.
    """
    producers = program.producers()
    borders: dict[Value, Layout] = {}
    for step in steps:
        if not isinstance(step, ConvStep) or len(step.strides) != 2 or step.inputs[1].shape[1:3] != (1, 1):
            continue
        value = step.inputs[0]
        producer = producers.get(value)
        if value in unpadded and isinstance(producer, ConvStep) and writes_lines(producer):
            border = ((0, 0), (0, 0), *zip(step.pads_begin, step.pads_end, strict=True))
            if any(n for pair in border for n in pair):
                borders[value] = replace(unpadded[value], border=border)
    return borders
