"""Other numbers in a table of kernels: to bind another shape, a few array operations write the words that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.base import BoundSizes
from irload.plan.backends.llvm.kernel import Temporary
from irload.plan.backends.llvm.team import FUNCTION, UNITS
from irload.plan.backends.llvm.traced_selection import TracedLaunch, TracedSelection
from irload.plan.backends.llvm.tuning import SHARED_CYCLES
from irload.record import record

Cycles = Sequence[tuple[Array, float]]
"""The rows of kernels that threads may share, and the cycles of each."""


@record(eq=False)
class Block:
    """The arguments of one launch for the steps of a group: `pointers` and numbers from word `start` on.

    `index`: the rows of the steps.
    """

    start: int
    shape: tuple[int, int]
    index: Array


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
