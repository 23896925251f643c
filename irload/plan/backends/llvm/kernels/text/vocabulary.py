"""Hash tables of words and of merges, in the memory layout that the kernels read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.ops.text.ragged import offsets_of
from irload.plan.backends.llvm.kernel import Kernel, address
from irload.plan.backends.llvm.kernels.text.models import PAIR_FACTORS
from irload.plan.backends.llvm.kernels.text.words import NumberWords
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.target import Target

UNBOUNDED = 1 << 30
_MASK = (1 << 64) - 1


def call(kernel: Kernel, target: Target, *arguments: Array | int, begin: int = 0, end: int = 1) -> None:
    """Run a kernel whose arguments are arrays, passed by address, and numbers. The GIL is released."""
    values = [address(a) if isinstance(a, np.ndarray) else a for a in arguments]
    run, _ = function(kernel, target)
    block = np.array(values, np.int64)
    run(address(block), begin, end, None, None)


class WordIndex:
    """A hash table for at most `most` words with at most `nbytes` bytes in total."""

    def __init__(self, target: Target, most: int, nbytes: int) -> None:
        self._target = target
        self._most = most
        slots = 1 << max(most * 2 - 1, 1).bit_length()
        self._slots = np.zeros(slots, np.int32)
        self._hashes, self.offsets, self.lengths = (np.empty(max(most, 1), np.int32) for _ in range(3))
        self.pool = np.empty(max(nbytes, 1), np.uint8)
        self.clear()

    def clear(self) -> None:
        """Remove all words."""
        self._slots.fill(0)
        self.count = 0
        self._used = 0

    @property
    def arguments(self) -> tuple[Array | int, ...]:
        """The arguments that `WordTable.of` reads."""
        return self._slots, self._hashes, self.offsets, self.lengths, self.pool, self._slots.size - 1

    def number(
        self, begins: Array, ends: Array, chars: Array, numbers: Array, first: int = 0, longest: int = UNBOUNDED
    ) -> int:
        """Write the numbers of the words from `first` on, and add new words.

        Returns the index of the first word that does not fit into the table.
        """
        state = np.array([first, self.count, self._used], np.int64)
        tables = (numbers, state, begins.size, longest, self._most, self.pool.size)
        call(NumberWords(), self._target, chars, begins, ends, *self.arguments, *tables)
        last, self.count, self._used = state.tolist()
        return last


class Vocabulary:
    """A hash table of tokens, their ids, and the length of the longest token for each first byte."""

    def __init__(self, target: Target, tokens: Mapping[bytes, int]) -> None:
        valid = {token: id for token, id in tokens.items() if token and id >= 0}
        chars = np.frombuffer(b"".join(valid) or b"\0", np.uint8)
        lengths = np.fromiter(map(len, valid), np.int64, len(valid))
        begins, ends = offsets_of(lengths)
        self._words = WordIndex(target, len(valid), chars.size)
        self._words.number(begins, ends, chars, np.empty(max(len(valid), 1), np.int32))
        self._ids = np.fromiter(valid.values(), np.int32, len(valid)) if valid else np.zeros(1, np.int32)
        self._limits = np.zeros(256, np.int32)
        np.maximum.at(self._limits, chars[begins], lengths.astype(np.int32))

    @property
    def arguments(self) -> tuple[Array | int, ...]:
        """The arguments of the kernels: the table, the ids and the lengths."""
        return *self._words.arguments, self._ids, self._limits


class Pairs:
    """A hash table from pairs of ids to the rank and the result of their merge."""

    def __init__(self, lefts: Sequence[int], rights: Sequence[int], results: Sequence[int]) -> None:
        keys = np.array(lefts, np.int64) << 32 | np.array(rights, np.int64)
        keys, ranks = np.unique(keys[::-1], return_index=True)  # the last of equal pairs is used
        ranks = len(lefts) - 1 - ranks
        values = np.stack([ranks, np.array(results, np.int64)[ranks]], -1).astype(np.int32)
        size = 1 << max(len(keys) * 2, 2).bit_length()
        self.mask = size - 1
        """The number of slots minus 1."""
        self._keys = np.full(size, -1, np.int64)
        self._values = np.zeros((2, size), np.int32)
        wide = keys.view(np.uint64)
        mixed = (wide * np.uint64(PAIR_FACTORS[0] & _MASK) ^ wide >> np.uint64(29)) * np.uint64(PAIR_FACTORS[1] & _MASK)
        slots = (mixed >> np.uint64(32)).astype(np.int64) & self.mask
        waiting = np.arange(len(keys))
        while waiting.size:
            at = slots[waiting]
            free = self._keys[at] < 0
            _, chosen = np.unique(at[free], return_index=True)
            placed = waiting[free][chosen]
            self._keys[slots[placed]] = keys[placed]
            self._values[:, slots[placed]] = values[placed].T
            waiting = np.setdiff1d(waiting, placed, assume_unique=True)
            slots[waiting] = slots[waiting] + 1 & self.mask

    @property
    def arguments(self) -> tuple[Array, Array, Array]:
        """Keys, ranks and results."""
        return self._keys, self._values[0], self._values[1]
