"""A segment of steps, compiled to a table of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any
from weakref import WeakValueDictionary

from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.base import SharedData, StepKernel
from irload.plan.backends.compiled import StoredExecutable
from irload.plan.backends.llvm.image import stored
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.runtime import TableCall, nothing
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.selector import PackedConstants, Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import LONG_STEP, Step
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import is_on

LONGEST = 50e9
"""Maximum floating-point operations per call; time limits and Ctrl-C are checked between calls."""
PART = 2e9
"""Floating-point operations of one part of a long kernel, at most about a second."""


class LlvmExecutable:
    """Compiled kernels bound to memory."""

    def __init__(
        self,
        steps: Sequence[Step],
        memory: Memory,
        target: Target,
        options: Options,
        shared: SharedData | None = None,
    ) -> None:
        packs: PackedConstants = ({} if shared is None else shared).setdefault("llvm", WeakValueDictionary())
        selector = Selector(memory, target, options, packs)
        self.kernels: list[StepKernel] = []
        launches: list[Launch] = []
        self._ranges: list[tuple[int, int]] = []
        for step in steps:
            selector.begin()
            found = TABLE.select(step)(step, selector)
            if found:
                own = [launch.kernel for launch in found]
                main = max(own, key=lambda kernel: (not kernel.prepares, kernel.cycles))
                self.kernels.append(StepKernel(step, main.name, main.why))
                self._ranges.append((len(launches), len(launches) + len(found)))
                launches += found
        self.table = launched(launches, target, options.threads, selector.temporary_bytes)
        self._constants = selector.constants
        self._packed = selector.packed_weights
        self.calls = bundled([kernel.step.flops for kernel in self.kernels], self._ranges)

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {
            "working memory": self.table.nbytes,
            "constants": sum({id(a): a.nbytes for a in self._constants}.values()),
            "packed weights": sum({id(a): a.nbytes for a in self._packed}.values()),
        }

    def run(self, context: Any) -> None:
        self.table.run_calls(self.calls, nothing if context is None else context.deadline.check)

    def run_kernel(self, index: int, context: Any) -> None:
        if is_on():
            for memory in self.table.memory:
                memory.fill(0xFF)
        self.table.run(*self._ranges[index])

    def stored(self, arena: Array) -> StoredExecutable:
        return stored(self.table, arena, self.calls)


def bundled(flops: Sequence[int], ranges: Sequence[tuple[int, int]]) -> list[TableCall]:
    """Ranges of kernels that run in one call; long kernels are divided into parts. Given for each step, in order."""
    if flops and max(flops) < LONG_STEP and sum(flops) <= LONGEST:  # the most frequent case
        return [(ranges[0][0], ranges[-1][1], 1)]
    calls: list[TableCall] = []
    work = 0.0
    for amount, (first, last) in zip(flops, ranges, strict=True):
        if calls and work + amount <= LONGEST and amount < LONG_STEP:
            calls[-1] = (calls[-1][0], last, 1)
            work += amount
        else:
            parts = ceil(amount / PART) if amount >= LONG_STEP else 1
            calls.append((first, last, parts))
            work = amount if parts == 1 else LONGEST
    return calls
