"""The NumPy back end under the contract of plan/backends/base.py."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.base import Executable, Options
from irload.plan.backends.numpy.executable import NumpyExecutable
from irload.plan.backends.numpy.passes import split_results
from irload.plan.backends.numpy.requests import requests
from irload.plan.backends.numpy.support import supports
from irload.plan.ir.program import Program, Step
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests


class NumpyBackend:
    """Complete on its own: what has no kernel runs by the operation's own `compute`."""

    name = "numpy"

    def supports(self, step: Step) -> bool:
        return supports(step)

    def fuse(self, program: Program) -> None:
        split_results(program)

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        return requests(program, steps)

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options) -> Executable:
        return NumpyExecutable(steps, memory, options)
