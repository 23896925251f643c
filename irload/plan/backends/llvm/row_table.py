"""Tables of kernels from groups of launches, built by a few array operations per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import BoundSizes, StepKernel
from irload.plan.backends.llvm.executable import bundled
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.launching import TOGETHER_CYCLES, weights_ahead
from irload.plan.backends.llvm.patching import Block, Cycles, Patch
from irload.plan.backends.llvm.runtime import RowTable, nothing
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import AHEAD, ARGUMENTS, ENTRY, FUNCTION, NEXT, SHARED, UNITS
from irload.plan.backends.llvm.traced_selection import GroupLaunch, TracedSelection
from irload.plan.ir.program import Step
from irload.record import record


@record(eq=False)
class Selected:
    """The launches of steps that differ only in pointers.

    `positions`: of the steps in the segment; `flops`: of each; `keep`: arrays that must outlive the launches; `traced`:
    the selection of which these are the launches at one shape.
    """

    positions: Sequence[int]
    flops: int
    launches: Sequence[GroupLaunch]
    keep: Sequence[Array]
    traced: TracedSelection | None = None


class BoundTable:
    """A segment bound to one shape.

    `steps`: all of the segment, symbolic; `groups`: the launches of each group of steps.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        groups: Sequence[Sequence[Selected]],
        target: Target,
        threads: int,
        temporary: int,
        sizes: BoundSizes,
    ) -> None:
        self._steps, self.groups = steps, groups
        self.patched: frozenset[int] = frozenset()
        """The groups of which `groups` has the launches for another shape."""
        found = [part for group in groups for part in group if part.launches]
        counts = np.zeros(len(steps), np.int64)
        flops: dict[int, int] = {}
        for part in found:
            counts[list(part.positions)] = len(part.launches)
            flops.update(dict.fromkeys(part.positions, part.flops))
        self._flops = {k: flops[k] for k in sorted(flops)}
        ends = np.cumsum(counts)
        starts = ends - counts
        self._ranges = [r for r in zip(starts.tolist(), ends.tolist(), strict=True) if r[0] < r[1]]
        memory = sizes.working("temporary", temporary)
        self._rows = rows = TableRows(groups, starts, int(ends[-1]), memory, threads)
        self._patches: dict[Sequence[int], Patch | None] = {}
        """For groups that change, None if their launches may have other code."""
        self._arena = sizes.memory.arena
        scratch = sizes.working("scratch", rows.stride * threads)
        self.table = RowTable(rows.rows, target, threads, rows.stride, scratch, memory, (rows, self._arena))
        self.calls = bundled(list(self._flops.values()), self._ranges)

    def at(self, changed: tuple[int, ...], sizes: BoundSizes) -> BoundTable | None:
        """The table for another shape; None if code or the form of arguments may differ.

        `changed`: the groups that change, or whose memory has moved.
        """
        if changed not in self._patches:
            self._patches[changed] = self._patch(changed)
        patch = self._patches[changed]
        words = None if patch is None else patch.words(sizes.symbols)
        if patch is None or words is None:
            return None
        if sizes.working("temporary", patch.temporary(words)) is not self._rows.temporary:
            return None
        table = self if sizes.replaces else self._copied()
        table._update(changed, patch, words, sizes)
        return table

    def _copied(self) -> BoundTable:
        other = copy(self)
        other._rows, other._flops = self._rows.copied(), self._flops.copy()
        other.table = self.table.like(other._rows.rows, (other._rows, self._arena))
        return other

    def _update(self, changed: Sequence[int], patch: Patch, words: Sequence[int], sizes: BoundSizes) -> None:
        """Write other words of the groups that change."""
        self.patched = self.patched.union(changed)
        rows, table = self._rows, self.table
        rows.update(changed, patch, words, sizes)
        if patch.calculates:
            for k, flops in zip(changed, patch.flops(words), strict=True):
                self._flops.update(dict.fromkeys(self.groups[k][0].positions, flops))
            self.calls = bundled(list(self._flops.values()), self._ranges)
        table.set_scratch(rows.stride, sizes.working("scratch", rows.stride * table.threads))
        if table.threads > 1:
            table.set_rows(rows.rows)

    def _patch(self, changed: Sequence[int]) -> Patch | None:
        parts = [self.groups[k][0] for k in changed]
        selections = [part.traced for part in parts if part.traced is not None]
        if len(selections) < len(parts):
            return None
        return Patch(selections, [self._rows.blocks[k] for k in changed], self._rows.temporary)

    @property
    def kernels(self) -> Sequence[StepKernel]:
        named: dict[int, StepKernel] = {}
        for part in (part for group in self.groups for part in group):
            if part.launches:
                main = max((each.launch.kernel for each in part.launches), key=lambda k: (not k.prepares, k.cycles))
                named |= {k: StepKernel(self._steps[k], main.name, main.why) for k in part.positions}
        return [named[k] for k in sorted(named)]

    @property
    def nbytes(self) -> Mapping[str, int]:
        return {"working memory": self.table.nbytes}

    def run(self, context: Any) -> None:
        self.table.run_calls(self.calls, nothing if context is None else context.deadline.check)

    def run_kernel(self, index: int, context: Any) -> None:
        self.table.run(*self._ranges[index])


class TableRows:
    """The rows of a table and the arguments to which they point."""

    def __init__(
        self,
        groups: Sequence[Sequence[Selected]],
        starts: Array,
        count: int,
        temporary: Array,
        threads: int,
    ) -> None:
        self.rows = np.zeros((max(count, 1), ENTRY), np.int64)
        self.temporary = temporary
        self._threads = threads
        launches: list[Launch | None] = [None] * count
        placed: list[list[tuple[GroupLaunch, Block]]] = []
        used = 0
        for group in groups:
            placed.append([])
            for part in group:
                index = starts[list(part.positions)]
                for k, each in enumerate(part.launches):
                    count, width = each.pointers.shape
                    block = Block(used, (count, max(width + len(each.numbers), 1)), index + k)
                    placed[-1].append((each, block))
                    used += prod(block.shape)
                    for row in block.index.tolist():
                        launches[row] = each.launch
        self.arguments = np.zeros(max(used, 1), np.int64)
        for each, block in (pair for group in placed for pair in group):
            self._write(each, block)
        self.blocks = [[block for _, block in group] for group in placed]
        """For each group the arguments of its launches."""
        self._scratch = [max((each.scratch for each, _ in group), default=0) for group in placed]
        """For each group the bytes of scratch memory per thread."""
        self._cycles: list[Cycles] = []
        """For each group the kernels that threads may share."""
        if threads > 1:
            shared = ([pair for pair in group if pair[0].launch.is_shared] for group in placed)
            self._cycles = [[(block.index, each.launch.kernel.cycles) for each, block in group] for group in shared]
        self._set_shared()
        for index, reader, pointer, stride in weights_ahead(launches, threads):
            place = (int(self.rows[reader, ARGUMENTS]) - self.arguments.ctypes.data) // 8
            self.rows[index, AHEAD] = self.arguments[place + pointer]
            self.rows[index, NEXT] = stride

    @property
    def stride(self) -> int:
        """Bytes of scratch memory per thread, in whole pages."""
        return -(-max(self._scratch, default=0) // 4096) * 4096

    def copied(self) -> TableRows:
        """A copy of the rows and of the arguments."""
        other = copy(self)
        other.rows, other.arguments, other._scratch = self.rows.copy(), self.arguments.copy(), self._scratch.copy()
        other.rows[:, ARGUMENTS] += other.arguments.ctypes.data - self.arguments.ctypes.data
        other._cycles = self._cycles.copy()
        return other

    def update(self, changed: Sequence[int], patch: Patch, words: Sequence[int], sizes: BoundSizes) -> None:
        """Write other words of the groups that change."""
        patch.write(words, self.rows, self.arguments, sizes)
        for k, scratch in zip(changed, patch.scratch(words), strict=True):
            self._scratch[k] = scratch
        if self._threads > 1:
            for k, cycles in zip(changed, patch.cycles(words), strict=True):
                self._cycles[k] = cycles
            self._set_shared()

    def _write(self, each: GroupLaunch, block: Block) -> None:
        """Write the rows of a block and its arguments."""
        count, width = block.shape
        words = self.arguments[block.start : block.start + count * width].reshape(block.shape)
        pointers = each.pointers.shape[1]
        words[:, :pointers] = each.pointers
        for k, pointer in enumerate(each.launch.pointers):
            if isinstance(pointer, Temporary):
                words[:, k] += self.temporary.ctypes.data
        if each.numbers:
            words[:, pointers:] = each.numbers
        rows, index = self.rows, block.index
        rows[index, FUNCTION] = each.function
        rows[index, ARGUMENTS] = self.arguments.ctypes.data + 8 * (block.start + width * np.arange(count))
        rows[index, UNITS] = each.units

    def _set_shared(self) -> None:
        """Set which kernels the threads share: none if there is little work."""
        shared = [each for group in self._cycles for each in group]
        self.rows[:, SHARED] = 0
        if sum(cycles * len(index) for index, cycles in shared) >= TOGETHER_CYCLES:
            for index, _ in shared:
                self.rows[index, SHARED] = 1
