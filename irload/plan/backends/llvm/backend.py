"""The back end of compiled kernels under the contract of plan/backends/base.py."""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.base import Executable, Options
from irload.plan.backends.channels_last import layouts
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.support import supports
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Program, Step
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests


class LlvmBackend:
    """Takes most steps on f32; what it leaves runs in NumPy."""

    name = "llvm"

    def __init__(self, target: Target) -> None:
        self.target = target

    def supports(self, step: Step) -> bool:
        return supports(step)

    def fuse(self, program: Program) -> None:
        """Nothing: a kernel may have several results and any expression."""

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        return MemoryRequests(layouts(program, steps, inputs=False))

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options) -> Executable:
        return LlvmExecutable(steps, memory, self.target, options)
