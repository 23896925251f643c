"""Segments bound to one shape, and to others: a few array operations write the words that differ into the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import BoundSizes
from irload.plan.backends.llvm.executable import BoundKernels, bundled
from irload.plan.backends.llvm.kernel import Temporary
from irload.plan.backends.llvm.launching import Block, Cycles, Selected
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import FUNCTION, UNITS
from irload.plan.backends.llvm.traced_selection import TracedLaunch, TracedSelection
from irload.plan.backends.llvm.tuning import SHARED_CYCLES
from irload.plan.ir.program import Step


class Patch:
    """The words of a table that differ between shapes for which the guards of `selections` hold.

    `blocks`: for each selection the blocks of its launches.
    """

    def __init__(
        self, selections: Sequence[TracedSelection], blocks: Sequence[Sequence[Block]], temporary: Array
    ) -> None:
        self._selections = selections
        firsts = np.cumsum([0, *(len(selection) for selection in selections)]).tolist()
        self._parts = list(zip(selections, blocks, firsts, strict=False))
        """For each selection its blocks, and the position of its first word."""
        self.calculates = any(selection.varies(selection.flops) for selection in selections)
        """True if the operations differ."""
        values: list[tuple[int, int, Array]] = []
        numbers: list[tuple[int, int, int]] = []
        rows: list[tuple[int, int, int]] = []
        for selection, launch, block, first in self._launches():
            steps, width = block.shape
            starts = [block.start + width * k for k in range(steps)]
            columns = launch.operands.columns
            for column, own in zip(columns, launch.operands.values.T, strict=True):
                word = first + launch.distances[column]
                values += [(start + column, word, number) for start, number in zip(starts, own, strict=True)]
            for column, word in enumerate((*launch.distances, *launch.numbers)):
                if column not in columns and selection.varies(word):
                    pointer = launch.pointers[column] if column < len(launch.pointers) else None
                    base = temporary.ctypes.data if isinstance(pointer, Temporary) else 0
                    numbers += [(start + column, first + word, base) for start in starts]
            for column, word in ((FUNCTION, launch.function), (UNITS, launch.units)):
                if selection.varies(word):
                    rows += [(row, column, first + word) for row in block.index.tolist()]
        self._places, self._words, bases = np.array([*values, *numbers], np.int64).reshape(-1, 3).T.copy()
        self._values, self._bases = bases[: len(values)], bases[len(values) :]
        self._rows, self._columns, self._of_rows = np.array(rows, np.int64).reshape(-1, 3).T.copy()

    def words(self, symbols: Sequence[int]) -> list[int] | None:
        """The words of all selections for values of the symbols; None if a guard fails."""
        found: list[int] = []
        for selection in self._selections:
            own = selection.words(symbols)
            if own is None:
                return None
            found += own
        return found

    def temporary(self, words: Sequence[int]) -> int:
        """The bytes of temporary memory."""
        return max(words[first + selection.temporary] for selection, _, first in self._parts)

    def flops(self, words: Sequence[int]) -> list[int]:
        """For each selection the operations of a step."""
        return [words[first + selection.flops] for selection, _, first in self._parts]

    def scratch(self, words: Sequence[int]) -> list[int]:
        """For each selection the bytes of scratch memory per thread."""
        return [
            max([words[first + launch.scratch] for launch in selection.launches], default=0)
            for selection, _, first in self._parts
        ]

    def cycles(self, words: Sequence[int]) -> list[Cycles]:
        """For each selection the kernels that threads may share."""
        found: list[Cycles] = []
        for selection, blocks, first in self._parts:
            own = words[first:]
            pairs = zip(selection.launches, blocks, strict=True)
            cycles = [(block.index, launch.whole(own).cycles) for launch, block in pairs if own[launch.units] > 1]
            found.append([(index, each) for index, each in cycles if each >= SHARED_CYCLES])
        return found

    def write(self, words: Sequence[int], rows: Array, arguments: Array, sizes: BoundSizes) -> None:
        """Write words into the rows and arguments of a table."""
        given = np.array(words, np.int64)
        found = given[self._words]
        count = len(self._values)
        found[:count] += sizes.addresses(self._values)
        found[count:] += self._bases
        arguments[self._places] = found
        if len(self._rows):
            rows[self._rows, self._columns] = given[self._of_rows]

    def _launches(self) -> Iterator[tuple[TracedSelection, TracedLaunch, Block, int]]:
        for selection, blocks, first in self._parts:
            for launch, block in zip(selection.launches, blocks, strict=True):
                yield selection, launch, block, first


class BoundTable(BoundKernels):
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
        super().__init__(steps, groups, target, threads, temporary, sizes.working, sizes.memory.arena)
        self.patched: frozenset[int] = frozenset()
        """The groups of which `groups` has the launches for another shape."""
        self._patches: dict[Sequence[int], Patch | None] = {}
        """For groups that change, None if their launches may have other code."""

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
        other.table = self.table.like(other._rows.rows, (other._rows, self._keep))
        return other

    def _update(self, changed: Sequence[int], patch: Patch, words: Sequence[int], sizes: BoundSizes) -> None:
        """Write other words of the groups that change."""
        self.patched = self.patched.union(changed)
        rows, table = self._rows, self.table
        rows.update(changed, patch, words, sizes)
        if patch.calculates:
            for k, flops in zip(changed, patch.flops(words), strict=True):
                self._flops.update(dict.fromkeys(self.groups[k][0].positions, flops))
            self.calls = bundled(list(self._flops.values()), rows.ranges)
        table.set_scratch(rows.stride, sizes.working("scratch", rows.stride * table.threads))
        if table.threads > 1:
            table.set_rows(rows.rows)

    def _patch(self, changed: Sequence[int]) -> Patch | None:
        parts = [self.groups[k][0] for k in changed]
        selections = [part.traced for part in parts if part.traced is not None]
        if len(selections) < len(parts):
            return None
        return Patch(selections, [self._rows.blocks(k) for k in changed], self._rows.temporary)
