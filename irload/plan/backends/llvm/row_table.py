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
from irload.plan.backends.llvm.traced_selection import TracedLaunch, TracedSelection, Words
from irload.plan.backends.llvm.tuning import SHARED_CYCLES
from irload.plan.ir.program import Step

Variant = tuple[Sequence[int], Sequence[TracedSelection | None]]
"""The groups that depend on sizes, and for each its selection at a shape."""
Tables = dict[Variant, "BoundTable"]
"""The tables of one arena: for each variant one that is bound to some shape."""


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
        self.calculates = any(selection.flops in selection.varying for selection in selections)
        """True if the operations differ."""
        values: list[tuple[int, int, Array]] = []
        numbers: list[tuple[int, int, int]] = []
        rows: list[tuple[int, int, int]] = []
        for selection, launch, block, first in self._launches():
            steps, width = block.shape
            starts = [block.start + width * k for k in range(steps)]
            varying = selection.varying
            columns = launch.operands.columns
            for column, own in zip(columns, launch.operands.values.T.tolist(), strict=True):
                word = first + launch.distances[column]
                values += [(start + column, word, number) for start, number in zip(starts, own, strict=True)]
            for column, word in enumerate((*launch.distances, *launch.numbers)):
                if word in varying and column not in columns:
                    pointer = launch.pointers[column] if column < len(launch.pointers) else None
                    base = temporary.ctypes.data if isinstance(pointer, Temporary) else 0
                    numbers += [(start + column, first + word, base) for start in starts]
            for column, word in ((FUNCTION, launch.function), (UNITS, launch.units)):
                if word in varying:
                    rows += [(row, column, first + word) for row in block.index.tolist()]
        self._places, self._words, bases = np.array([*values, *numbers], np.int64).reshape(-1, 3).T.copy()
        self._values, self._bases = bases[: len(values)], bases[len(values) :]
        self._rows, self._columns, self._of_rows = np.array(rows, np.int64).reshape(-1, 3).T.copy()

    def temporary(self, words: Sequence[Words]) -> int:
        """The bytes of temporary memory."""
        return max(own[selection.temporary] for selection, own in zip(self._selections, words, strict=True))

    def flops(self, words: Sequence[Words]) -> list[int]:
        """For each selection the operations of a step."""
        return [own[selection.flops] for selection, own in zip(self._selections, words, strict=True)]

    def scratch(self, words: Sequence[Words]) -> list[int]:
        """For each selection the bytes of scratch memory per thread."""
        return [
            max([own[launch.scratch] for launch in selection.launches], default=0)
            for selection, own in zip(self._selections, words, strict=True)
        ]

    def cycles(self, words: Sequence[Words]) -> list[Cycles]:
        """For each selection the kernels that threads may share."""
        found: list[Cycles] = []
        for (selection, blocks, _), own in zip(self._parts, words, strict=True):
            pairs = zip(selection.launches, blocks, strict=True)
            cycles = [(block.index, launch.whole(own).cycles) for launch, block in pairs if own[launch.units] > 1]
            found.append([(index, each) for index, each in cycles if each >= SHARED_CYCLES])
        return found

    def write(self, words: Sequence[Words], rows: Array, arguments: Array, sizes: BoundSizes) -> None:
        """Write words into the rows and arguments of a table."""
        given = np.array([word for own in words for word in own], np.int64)
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

    `steps`: all of the segment, symbolic; `groups`: the launches of each group of steps, at this shape or another one;
    `tables`: of the same arena.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        groups: Sequence[Sequence[Selected]],
        target: Target,
        threads: int,
        temporary: int,
        sizes: BoundSizes,
        tables: Tables,
    ) -> None:
        super().__init__(steps, groups, target, threads, temporary, sizes.working, sizes.memory.arena)
        self.tables = tables
        self._arrays: dict[int, Sequence[Array]] = {}
        """The arrays to which the words of patched groups point."""
        self._patches: dict[Sequence[int], Patch] = {}
        """For groups that change."""

    def at(self, changed: tuple[int, ...], sizes: BoundSizes) -> BoundTable | None:
        """The table for another shape; None if code or the form of arguments may differ.

        `changed`: the groups that change, or whose memory has moved.
        """
        words: list[Words] = []
        selections = [self.groups[k][0].traced for k in changed]
        for selection in selections:
            found = None if selection is None else selection.words(sizes.symbols)
            if found is None:
                return None
            words.append(found)
        return self.with_words(changed, selections, words, sizes)

    def with_words(
        self,
        changed: Sequence[int],
        selections: Sequence[TracedSelection | None],
        words: Sequence[Words],
        sizes: BoundSizes,
    ) -> BoundTable | None:
        """The table with other words of groups, None if its temporary memory is too small."""
        patch = self._patches.get(changed)
        if patch is None:
            blocks = [self._rows.blocks(k) for k in changed]
            traced = [selection for selection in selections if selection is not None]
            patch = self._patches[changed] = Patch(traced, blocks, self._rows.temporary)
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

    def _update(self, changed: Sequence[int], patch: Patch, words: Sequence[Words], sizes: BoundSizes) -> None:
        """Write other words of the groups that change."""
        self._arrays = self._arrays | {k: own.arrays for k, own in zip(changed, words, strict=True) if own.arrays}
        rows, table = self._rows, self.table
        rows.update(changed, patch, words, sizes)
        if patch.calculates:
            for k, flops in zip(changed, patch.flops(words), strict=True):
                self._flops.update(dict.fromkeys(self.groups[k][0].positions, flops))
            self.calls = bundled(list(self._flops.values()), rows.ranges)
        table.set_scratch(rows.stride, sizes.working("scratch", rows.stride * table.threads))
        if table.threads > 1:
            table.set_rows(rows.rows)
