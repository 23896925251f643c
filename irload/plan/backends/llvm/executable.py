"""A segment of steps, compiled to a table of kernels: for static shapes, or bound to one shape after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import ceil
from typing import Any
from weakref import WeakValueDictionary

from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.base import BoundSizes, SharedData, StepKernel
from irload.plan.backends.compiled import StoredExecutable
from irload.plan.backends.llvm.image import imaged, packed
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.launching import NO_VALUES, TableForm, TableRows
from irload.plan.backends.llvm.parts import TEMPORARY_BYTES, Codes, TablePart, Words, pointer_term
from irload.plan.backends.llvm.runtime import KernelTable, TableCall, working_memory
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
        self.table.run_calls(self.calls, context)

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
        image, constants = imaged(self._rows, self.launches, self._codes, arena, self.calls)
        return StoredExecutable(packed(image), constants.pieces(), constants.nbytes)


def bundled(flops: Array, ranges: Sequence[tuple[int, int]]) -> list[TableCall]:
    """Ranges of kernels that run in one call; long kernels are divided into parts.

    `flops`, `ranges`: the floating-point operations and the range of kernels of each step.
    """
    if len(flops) and flops.max() < LONG_STEP and flops.sum() <= LONGEST:  # the most frequent case
        return [(ranges[0][0], ranges[-1][1], 1)]
    calls: list[TableCall] = []
    work = 0.0
    for amount, (first, last) in zip(flops.tolist(), ranges, strict=True):
        if calls and work + amount <= LONGEST and amount < LONG_STEP:
            calls[-1] = (calls[-1][0], last, 1)
            work += amount
        else:
            parts = ceil(amount / LONGEST_PART) if amount >= LONG_STEP else 1
            calls.append((first, last, parts))
            work = amount if parts == 1 else LONGEST
    return calls


class BoundTable(BoundKernels):
    """A segment bound to a shape. To bind another shape, array operations write the words that differ into the table.

    `steps`: its symbolic steps; `words`: the numbers of each group of its parts.
    """

    def __init__(
        self, steps: Sequence[Step], form: TableForm, words: Sequence[Words], target: Target, sizes: BoundSizes
    ) -> None:
        super().__init__(steps, form, words, sizes.addresses, target, sizes.working, sizes.memory.arena)

    def at(self, changed: Sequence[int], words: Sequence[Words], sizes: BoundSizes) -> BoundTable | None:
        """The table for another shape; None if its temporary memory is too small.

        `changed`: the groups whose words differ, or whose memory has moved; `words`: of all groups.
        """
        numbers = [words[k] for k in changed]
        temporary = max((group_numbers[TEMPORARY_BYTES] for group_numbers in numbers), default=0)
        if sizes.working("temporary", temporary) is not self._rows.temporary:
            return None
        table = self if sizes.replaces else self._copied()
        table._update(changed, words, numbers, sizes)  # noqa: SLF001
        return table

    def _copied(self) -> BoundTable:
        other = copy(self)
        other._rows = self._rows.copied()  # noqa: SLF001
        other.table = self.table.like(other._rows.rows, (other._rows, self._keep))  # noqa: SLF001
        return other

    def _update(
        self, changed: Sequence[int], words: Sequence[Words], numbers: Sequence[Words], sizes: BoundSizes
    ) -> None:
        self.words = words
        rows, table = self._rows, self.table
        shared = rows.shared
        rows.update(self.form.records_of(changed, numbers), numbers, sizes.addresses)
        self.calls = bundled(rows.flops, self.form.ranges)
        scratch = sizes.working("scratch", rows.stride * table.threads)
        if scratch is not table.scratch or rows.stride != table.stride:
            table.set_scratch(rows.stride, scratch)
        if rows.shared is not shared:
            table.set_rows(rows.rows)
