"""Memory requests of the kernels: layouts."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.channels_last import layouts
from irload.plan.backends.numpy.selection.table import TABLE
from irload.plan.ir.program import Program, Step
from irload.plan.memory.requests import MemoryRequests


def requests(program: Program, steps: Sequence[Step]) -> MemoryRequests:
    """Return the requests of these steps."""
    copied = [v for s in steps if TABLE.rows[type(s)].copies for v in s.outputs]
    return MemoryRequests(layouts(program, steps, (*program.inputs, *copied)))
