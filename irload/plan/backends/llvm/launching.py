"""Builds tables of kernels from parts: the order of rows, sharing among threads, weights to prefetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import accumulate, chain, pairwise

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch, Streamed
from irload.plan.backends.llvm.parts import PROPERTIES, TEMPORARY, Codes, TablePart, Words, pointer_term
from irload.plan.backends.llvm.runtime import KernelTable, working_memory
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.team import AHEAD, AHEAD_STRIDE, ARGUMENTS, ENTRY, FUNCTION, SHARED, UNITS
from irload.plan.backends.llvm.tuning import REACH, SHARED_CYCLES, TOGETHER_CYCLES
from irload.record import record

SETS = 16
"""Maximum number of sets of changed groups for which the records are cached."""
NO_VALUES: Array = np.zeros(0, np.int64)
"""An empty array: the addresses of values for parts whose terms contain no values."""


@record(eq=False)
class RecordWords:
    """Words of records as sums of constants, numbers and addresses. `indices`: their indices in the records."""

    constants: Array
    numbers: Array
    addresses: Array
    indices: Array

    def write(self, records: Array, words: Sequence[Words], addresses: Array) -> None:
        """Write the words into the records. `words`: the numbers of each group; `addresses`: of memory and values."""
        numbers = np.fromiter(chain.from_iterable(words), np.int64)
        records[self.indices] = self.constants + numbers[self.numbers] + addresses[self.addresses]


class GroupRecords:
    """The records of some groups in a table.

    `words`: the numbers of each group, at any shape; `first`: the index of the first word of each group in the records
    of the table; `properties`: the indices of the properties of all rows of the table.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[TablePart]],
        words: Sequence[Words],
        first: Sequence[int],
        properties: Array,
    ) -> None:
        sizes = list(map(_size, groups))
        constants, numbers, addresses = _joined([part.sums for group in groups for part in group], 3)
        offsets = np.cumsum([0, *map(len, words)])[:-1]
        ranges = [np.arange(at, at + size) for at, size in zip(first, sizes, strict=True)]
        indices = np.concatenate([NO_VALUES, *ranges])
        every = constants, numbers + np.repeat(offsets, sizes), addresses, indices
        self.words = RecordWords(*every)
        """All words."""
        self.numbered = RecordWords(*(each[numbers != 0] for each in every))
        """The words that differ between shapes at equal addresses. Number 0 of each group is 0."""
        self.rows: Array = np.flatnonzero(np.isin(properties[0], indices))
        """The rows of the table with these records."""
        self.properties: Array = properties[:, self.rows]
        """The indices of the words with the properties of these rows."""


class TableForm:
    """The part of a table that does not depend on the shape: the records of its groups, and the order of rows.

    `groups`: the parts of each group; `words`: the numbers of each group, at any shape; `threads`: the number of
    threads that share kernels.
    """

    def __init__(self, groups: Sequence[Sequence[TablePart]], words: Sequence[Words], threads: int) -> None:
        self.groups = groups
        self.threads = threads
        parts = [part for group in groups for part in group]
        starts = np.cumsum([0, *(part.sums.shape[1] for part in parts)])[:-1]
        owners, firsts = _joined([part.rows for part in parts], 2)
        order = np.argsort(owners, kind="stable")
        self.firsts: Array = (firsts + np.repeat(starts, [part.rows.shape[1] for part in parts]))[order]
        """The first word of the record of each row."""
        ends = np.cumsum(np.bincount(owners)).tolist()
        self.ranges = [each for each in pairwise([0, *ends]) if each[0] < each[1]]
        """The rows of each step that has kernels."""
        self.first_rows = [first for first, _ in self.ranges]
        self.properties: Array = self.firsts + np.arange(PROPERTIES)[:, None]
        """The indices of the words with the properties of each row."""
        self._starts = [0, *accumulate(map(_size, groups))]
        self.records = GroupRecords(groups, words, self._starts[:-1], self.properties)
        """The records of all groups."""
        self.prefetches = [] if all(part.is_traced for part in parts) else list(self._prefetches(parts, order))
        """The rows that prefetch weights, the words that contain the addresses, and the bytes between threads."""
        self._records_of_groups: dict[Sequence[int], GroupRecords] = {}

    def records_of(self, changed: Sequence[int], words: Sequence[Words]) -> GroupRecords:
        """The records of the changed groups. `words`: the numbers of these groups, at any shape."""
        records = self._records_of_groups.get(changed)
        if records is None:
            if len(self._records_of_groups) >= SETS:
                self._records_of_groups.clear()
            groups, first = [self.groups[k] for k in changed], [self._starts[k] for k in changed]
            records = self._records_of_groups[changed] = GroupRecords(groups, words, first, self.properties)
        return records

    def _prefetches(self, parts: Sequence[TablePart], order: Array) -> Iterator[tuple[int, int, int]]:
        streams: list[Streamed | None] = []
        for part in parts:  # traced kernels neither prefetch weights nor stream them
            created = [None if part.is_traced else create(()).streamed for create in part.kernels]
            streams += created * len(part.positions)
        addresses = self.records.words.addresses

        def is_temporary(row: int, pointer: int) -> bool:
            return addresses[self.firsts[row] + PROPERTIES + pointer] == TEMPORARY

        rows = [streams[k] for k in order.tolist()]
        for index, reader, pointer, stride in prefetched_weights(rows, self.threads, is_temporary):
            yield index, self.firsts[reader] + PROPERTIES + pointer, stride


class TableRows:
    """The rows of a table and its records. `values`: the addresses of values; `temporary`: memory for one step."""

    def __init__(self, form: TableForm, words: Sequence[Words], values: Array, temporary: Array) -> None:
        self.form = form
        self.temporary = temporary
        self.records: Array = np.zeros(len(form.records.words.indices), np.int64)
        self.rows: Array = np.zeros((max(len(form.firsts), 1), ENTRY), np.int64)
        self._point()
        self._properties: Array = np.zeros(form.properties.shape, np.int64)
        self.stride = 0
        """Bytes of scratch memory per thread, in whole pages."""
        self.flops: Array = NO_VALUES
        """The floating-point operations of each step that has kernels."""
        self.shared = b""
        """For each row, whether threads share its kernel."""
        self._values: Array | None = None
        self.update(form.records, words, values)

    def copied(self) -> TableRows:
        """A copy of the rows and of the records."""
        other = copy(self)
        other.rows, other.records, other._properties = self.rows.copy(), self.records.copy(), self._properties.copy()  # noqa: SLF001
        other._point()  # noqa: SLF001
        return other

    def update(self, groups: GroupRecords, words: Sequence[Words], values: Array) -> None:
        """Write the words of some groups. If `values` is the same array as before, addresses are not written."""
        form, records, rows = self.form, self.records, self.rows[: len(self.form.firsts)]
        written = groups.numbered
        if values is not self._values:
            written = groups.words
            self._values = values
            self._addresses = np.concatenate([[0, self.temporary.ctypes.data], values])
        written.write(records, words, self._addresses)
        self._properties[:, groups.rows] = records[groups.properties]
        function, units, scratch, cycles, flops = self._properties
        rows[groups.rows, FUNCTION], rows[groups.rows, UNITS] = function[groups.rows], units[groups.rows]
        self.stride = -(-int(scratch.max(initial=0)) // 4096) * 4096
        self.flops = flops[form.first_rows]
        if form.threads > 1:
            shared = (units > 1) & (cycles >= SHARED_CYCLES)
            shared &= cycles[shared].sum() >= TOGETHER_CYCLES
            if shared.tobytes() != self.shared:
                rows[:, SHARED], self.shared = shared, shared.tobytes()
        for row, word, stride in form.prefetches:
            rows[row, AHEAD], rows[row, AHEAD_STRIDE] = records[word], stride

    def _point(self) -> None:
        """Write the addresses of the arguments."""
        firsts = self.form.firsts
        self.rows[: len(firsts), ARGUMENTS] = self.records.ctypes.data + 8 * (firsts + PROPERTIES)


def launched(launches: Sequence[Launch], target: Target, threads: int, temporary: int) -> KernelTable:
    """The table of these launches. `temporary`: bytes that the kernels of one step share."""
    codes = Codes(target, threads)
    groups = [[TablePart([k], [codes.record(launch, 0, pointer_term)], (), codes)] for k, launch in enumerate(launches)]
    words = [Words([0, temporary])] * len(groups)
    form = TableForm(groups, words, threads)
    rows = TableRows(form, words, NO_VALUES, working_memory("temporary", temporary))
    scratch = working_memory("scratch", rows.stride * threads)
    return KernelTable(rows.rows, target, threads, rows.stride, scratch, rows.temporary, (rows, codes))


def prefetched_weights(
    streams: Sequence[Streamed | None], threads: int, is_temporary: Callable[[int, int], bool]
) -> Iterator[tuple[int, int, int, int]]:
    """The weights that kernels prefetch. `streams`: the weights of each kernel.

    Yields the index of the kernel, the index of the reader (the kernel that reads the weights), the reader's pointer,
    and the bytes between consecutive threads. The reader is the first of the next REACH kernels with enough constant
    weights, or else the kernel itself.
    """
    for index, own in enumerate(streams):
        if own is None or not own.ahead:
            continue
        for k in (*range(index + 1, min(index + 1 + REACH, len(streams))), index):
            streamed = streams[k]
            if streamed is None or (k > index and is_temporary(k, streamed.pointer)):
                continue
            stride = streamed.nbytes // streamed.parts * (streamed.parts // threads)
            if streamed.nbytes - (threads - 1) * stride >= own.ahead:
                yield index, k, streamed.pointer, stride
                break
        else:
            raise AssertionError("a kernel prefetches more than its weights")


def _size(group: Sequence[TablePart]) -> int:
    """The number of words of a group."""
    return sum(part.sums.shape[1] for part in group)


def _joined(arrays: Sequence[Array], rows: int) -> Array:
    return np.concatenate([np.zeros((rows, 0), np.int64), *arrays], 1)
