"""The back end of compiled kernels under the contract of plan/backends/base.py."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import prod

from irload.core.op import Op
from irload.ops.detection.boxes import Suppressing
from irload.plan.backends.base import Executable, Options
from irload.plan.backends.channels_last import layouts
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.support import supports
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Program, Step, Value
from irload.plan.memory.memory import Memory
from irload.plan.memory.requests import MemoryRequests

LEAST_RELAID = 4096
"""Elements of a result that a kernel makes planar: fewer are copied by strides as fast."""


def _is_transposed(value: Value) -> bool:
    """True where channels innermost are another order of many elements."""
    return value.size >= LEAST_RELAID and value.shape[1] > 1 and prod(value.shape[2:]) > 1 and value.dtype.itemsize == 4


class LlvmBackend:
    """Takes most steps on f32; what it leaves runs in NumPy. `bf16`: some values are stored so."""

    name = "llvm"

    def __init__(self, target: Target, *, bf16: bool = False) -> None:
        self.target = target
        self.bf16 = bf16

    def supports(self, step: Step) -> bool:
        return supports(step)

    def operation(self, op: Op) -> Op:
        if not isinstance(op, Suppressing):
            return op
        from irload.plan.backends.llvm.kernels.suppression import suppressor  # as above: with kernels

        own = copy(op)
        own.__dict__["suppress"] = suppressor(self.target)
        return own

    def fuse(self, program: Program) -> None:
        """Nothing: a kernel may have several results and any expression."""

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        found = layouts(program, steps, inputs=False)
        over: dict[Step, tuple[int, ...]] = {}
        if self.bf16:
            from irload.plan.backends.llvm.overwriting import written_over  # with kernels, which only this needs
            from irload.plan.backends.llvm.storage import stored_layouts

            over = written_over(steps, found, self.target)
            found = stored_layouts(program, steps, found, self.target)
        return MemoryRequests(found, over, relaid={v for v in found if v in program.returned and _is_transposed(v)})

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options) -> Executable:
        return LlvmExecutable(steps, memory, self.target, options)
