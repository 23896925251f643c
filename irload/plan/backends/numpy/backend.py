"""The NumPy back end under the contract of plan/backends/base.py.

Kernels are imported when the first step needs them. This saves 12 ms at startup if all steps are compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from irload.core.op import Op
from irload.options import Options
from irload.plan.backends.base import Executable, SharedData
from irload.plan.backends.numpy.passes import split_results
from irload.plan.ir.program import Program, Step, Value
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests

if TYPE_CHECKING:
    from irload.plan.backends.numpy.prepared import PreparedSteps
    from irload.plan.memory.aliases import Aliases
    from irload.safety.cache_store import CacheStore


class NumpyBackend:
    """Runs every step except sums of samples; a step without a kernel runs by the `compute` of its operation."""

    name = "numpy"

    def supports(self, step: Step) -> bool:
        from irload.plan.backends.numpy.selection.table import TABLE

        return TABLE.supports(step)

    def operation(self, op: Op) -> Op:
        return op

    def fuse(self, program: Program) -> None:
        split_results(program)

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        if not steps:
            return MemoryRequests()
        from irload.plan.backends.numpy.requests import requests

        return requests(program, steps)

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options, shared: SharedData) -> Executable:
        from irload.plan.backends.numpy.executable import NumpyExecutable

        return NumpyExecutable(steps, memory, options, shared)

    def prepare(
        self,
        steps: Sequence[Step],
        aliases: Aliases,
        numbering: Mapping[Value, int],
        options: Options,
        shared: SharedData,
    ) -> PreparedSteps:
        from irload.plan.backends.numpy.prepared import PreparedSteps

        return PreparedSteps(steps, aliases, options, shared)

    def stores(self) -> Sequence[CacheStore]:
        """Return the files of the back end in the user's cache."""
        from irload.plan.backends.numpy.tuning import tuning_file
        from irload.safety.cache_store import CacheStore

        return [CacheStore("tuning", tuning_file())]
