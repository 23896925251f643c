"""A segment of steps, compiled to a table of kernels for static shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any
from weakref import WeakValueDictionary

from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.base import SharedData, StepKernel
from irload.plan.backends.compiled import StoredExecutable
from irload.plan.backends.llvm.image import stored
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.launching import NO_VALUES, TableForm, TableRows
from irload.plan.backends.llvm.parts import TEMPORARY_BYTES, Codes, TablePart, Words, pointer_term
from irload.plan.backends.llvm.runtime import KernelTable, TableCall, no_check, working_memory
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.backends.llvm.selector import PackedConstants, Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.program import LONG_STEP, Step
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import is_on

LONGEST = 50e9
"""Maximum floating-point operations per call; time limits and Ctrl-C are checked between calls."""
LONGEST_PART = 2e9
"""Floating-point operations of one part of a long kernel, at most about a second."""


class BoundKernels:
    """The kernels of a segment, bound to memory.

    `steps`: all steps of the segment; `form`: the form of the table; `words`: the numbers of each group of parts;
    `values`: the addresses of values; `working`: a function (name, bytes) that allocates memory; `keep`: an object that
    must outlive the table.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        form: TableForm,
        words: Sequence[Words],
        values: Array,
        target: Target,
        working: Callable[[str, int], Array],
        keep: object,
    ) -> None:
        self._steps, self.form, self.words, self._keep = steps, form, words, keep
        temporary = working("temporary", max((numbers[TEMPORARY_BYTES] for numbers in words), default=0))
        self._rows = rows = TableRows(form, words, values, temporary)
        scratch = working("scratch", rows.stride * form.threads)
        self.table = KernelTable(rows.rows, target, form.threads, rows.stride, scratch, temporary, (rows, keep))
        self.calls = bundled(rows.flops, form.ranges)

    @property
    def kernels(self) -> Sequence[StepKernel]:
        named: dict[int, StepKernel] = {}
        for group, words in zip(self.form.groups, self.words, strict=True):
            for part in (part for part in group if part.kernels):
                main = max((create(words) for create in part.kernels), key=lambda k: (not k.prepares, k.cycles))
                named |= {k: StepKernel(self._steps[k], main.name, main.why, main.arithmetic) for k in part.positions}
        return [named[k] for k in sorted(named)]

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {"working memory": self.table.nbytes}

    def run(self, context: Any) -> None:
        self.table.run_calls(self.calls, no_check if context is None else context.deadline.check)

    def run_kernel(self, index: int, context: Any) -> None:
        if is_on():
            for memory in self.table.memory:
                memory.fill(0xFF)
        self.table.run(*self.form.ranges[index])


class LlvmExecutable(BoundKernels):
    """Kernels selected for each step."""

    def __init__(
        self,
        steps: Sequence[Step],
        memory: Memory,
        target: Target,
        options: Options,
        shared: SharedData | None = None,
    ) -> None:
        packs: PackedConstants = ({} if shared is None else shared).setdefault("llvm", WeakValueDictionary())
        selector, self._codes = Selector(memory, target, options, packs), Codes(target, options.threads)
        groups: list[list[TablePart]] = []
        self.launches: list[Launch] = []
        """The launch of each row of the table."""
        with self._codes.in_parallel() as codes:
            for k, step in enumerate(steps):
                selector.begin()
                launches = TABLE.select(step)(step, selector)
                records = [codes.record(launch, step.flops, pointer_term) for launch in launches]
                groups.append([TablePart([k], records, (), codes)])
                self.launches += launches
        self._constants = selector.constants
        self._packed = selector.packed_weights
        words = [Words([0, selector.temporary_bytes])] * len(groups)
        form = TableForm(groups, words, options.threads)
        keep = self._codes, self.launches
        super().__init__(steps, form, words, NO_VALUES, target, working_memory, keep)

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {
            "working memory": self.table.nbytes,
            "constants": sum({id(a): a.nbytes for a in self._constants}.values()),
            "packed weights": sum({id(a): a.nbytes for a in self._packed}.values()),
        }

    def stored(self, arena: Array) -> StoredExecutable:
        return stored(self._rows, self.launches, self._codes, arena, self.calls)


def bundled(flops: Sequence[int], ranges: Sequence[tuple[int, int]]) -> list[TableCall]:
    """Ranges of kernels that run in one call; long kernels are divided into parts.

    `flops`, `ranges`: the floating-point operations and the range of kernels of each step.
    """
    if flops and max(flops) < LONG_STEP and sum(flops) <= LONGEST:  # the most frequent case
        return [(ranges[0][0], ranges[-1][1], 1)]
    calls: list[TableCall] = []
    work = 0.0
    for amount, (first, last) in zip(flops, ranges, strict=True):
        if calls and work + amount <= LONGEST and amount < LONG_STEP:
            calls[-1] = (calls[-1][0], last, 1)
            work += amount
        else:
            parts = ceil(amount / LONGEST_PART) if amount >= LONG_STEP else 1
            calls.append((first, last, parts))
            work = amount if parts == 1 else LONGEST
    return calls
