"""A segment of steps as a table of compiled kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from weakref import WeakValueDictionary

from irload.core.tensor import Array
from irload.plan.backends.base import Kernel, Options
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.launching import launched
from irload.plan.backends.llvm.selection import selection
from irload.plan.backends.llvm.selector import PackedWeights, Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import Step
from irload.plan.ir.work import flops
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import is_on
from irload.record import record

LONGEST = 50e9
"""Floating-point operations that one call does at most: time limits and Ctrl-C are looked at between calls."""


@record(frozen=False)
class Kept:
    """What all plans of one model share."""

    packs: PackedWeights = field(default_factory=WeakValueDictionary[Any, Array])


class LlvmExecutable:
    """Compiled kernels over one memory."""

    def __init__(self, steps: Sequence[Step], memory: Memory, target: Target, options: Options) -> None:
        kept: Kept = options.kept.setdefault("llvm", Kept())
        selector = Selector(memory, target, options, kept.packs)
        self.kernels: list[Kernel] = []
        launches: list[Launch] = []
        self._ranges: list[tuple[int, int]] = []
        self._borrowed: dict[int, int] = {}
        """The copies of earlier kernels that a kernel reads, by their places."""
        for step in steps:
            selector.begin()
            found = selection(type(step))(step, selector)
            if found:
                if selector.borrowed is not None:
                    self._borrowed[len(self.kernels)] = next(
                        k for k in reversed(range(len(launches))) if launches[k] is selector.borrowed
                    )
                own = [launch.kernel for launch in found]
                main = max(own, key=lambda kernel: (not kernel.prepares, kernel.cycles))
                self.kernels.append(Kernel(step, type(main).__name__, main.why))
                self._ranges.append((len(launches), len(launches) + len(found)))
                launches += found
        self.table = launched(launches, target, options.threads, selector.temporary_bytes)
        self._constants = selector.constants
        self._packed = selector.packed_weights
        self.calls = self._bundled()

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {
            "working memory": self.table.nbytes,
            "constants": sum({id(a): a.nbytes for a in self._constants}.values()),
            "packed weights": sum({id(a): a.nbytes for a in self._packed}.values()),
        }

    def run(self, context: Any) -> None:
        for first, last in self.calls:
            if context is not None:
                context.deadline.check()
            self.table.run(first, last)

    def run_kernel(self, index: int, context: Any) -> None:
        if is_on():
            for memory in self.table.memory:
                memory.fill(0xFF)
        if index in self._borrowed:
            self.table.run(self._borrowed[index], self._borrowed[index] + 1)
        self.table.run(*self._ranges[index])

    def release(self) -> None:
        self.kernels, self.calls = [], []

    def _bundled(self) -> list[tuple[int, int]]:
        """Ranges of kernels of which each is one call."""
        calls: list[tuple[int, int]] = []
        work = 0.0
        for kernel, (first, last) in zip(self.kernels, self._ranges, strict=True):
            amount = flops(kernel.step)
            if calls and work + amount <= LONGEST:
                calls[-1] = (calls[-1][0], last)
                work += amount
            else:
                calls.append((first, last))
                work = amount
        return calls
