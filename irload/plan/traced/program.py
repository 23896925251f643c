"""A program with symbolic sizes, as planned, stored and restored. Restoring must not import lowerings."""

from __future__ import annotations

from irload.core.trace import Trace
from irload.plan.backends.base import Backend
from irload.plan.ir.program import Program, Step, Value
from irload.plan.memory.requests import MemoryRequests
from irload.plan.traced.growth import Growing
from irload.record import record


@record(eq=False)
class TracedProgram:
    """A program with symbolic sizes, after all passes.

    `given`: the values of the caller's arrays; `late`: the steps that compute late constants; `growing`: the variables
    that grow; `owners`: the back end of each step.
    """

    trace: Trace
    program: Program
    given: tuple[Value, ...]
    late: list[Step]
    growing: list[Growing]
    owners: list[Backend]
    requests: MemoryRequests
