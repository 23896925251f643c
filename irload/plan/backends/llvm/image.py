"""A table of kernels as a file can keep it: objects of code, and addresses as places in memory that will lie elsewhere.

That is all it takes to run a plan again: no graph, no steps, no kernels' descriptions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from ctypes import c_char

import numpy as np
from numpy.lib.array_utils import byte_bounds

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import address
from irload.plan.backends.llvm.loader import Code, load
from irload.plan.backends.llvm.runtime import Entry, Table
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.memory.arena import aligned_bytes
from irload.record import record

NUMBER, ARENA, CONSTANTS, TEMPORARY = range(4)
"""What a word is: a number as it stands, or a place in one of the three kinds of memory."""
ENTRY = 6
"""Of each entry: its object, its words of arguments, of which so many are addresses, its units, whether threads share
it, and the bytes from one thread's weights ahead to the next one's. A word behind the arguments says where these begin.
"""


class NoImage(Exception):
    """A table that holds an address of memory that is none of the three kinds."""


@record(eq=False)
class Image:
    """The sizes of the memory, the words of all entries and what each is, the entries, the objects, and the calls.

    `calls`: the ranges of entries that run as one.
    """

    arena: int
    constants: int
    temporary: int
    scratch: int
    words: Array
    kinds: Array
    entries: Array
    objects: tuple[bytes, ...]
    calls: tuple[tuple[int, int], ...]


class Constants:
    """The memory that entries read and nothing writes: where each stretch of it goes, one behind the other."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._stretches: list[tuple[int, int]] = []
        for low, high in sorted({byte_bounds(a) for a in arrays if a.size}):
            if self._stretches and low <= self._stretches[-1][1]:
                self._stretches[-1] = self._stretches[-1][0], max(high, self._stretches[-1][1])
            else:
                self._stretches.append((low, high))
        self._lows = [low for low, _ in self._stretches]
        self._places: list[int] = []
        self.nbytes = 0
        for low, high in self._stretches:
            place = self.nbytes + (low - self.nbytes) % LINE  # in a cache line as it was
            self._places.append(place)
            self.nbytes = place + high - low

    def place(self, address: int) -> int | None:
        """Where the byte at an address goes, None for one of other memory."""
        k = bisect_right(self._lows, address) - 1
        if k < 0 or address >= self._stretches[k][1]:
            return None
        return self._places[k] + address - self._lows[k]

    def pieces(self) -> Iterator[bytes | memoryview]:
        """All of it, in order, what lies between stretches as zeros."""
        at = 0
        for (low, high), place in zip(self._stretches, self._places, strict=True):
            yield bytes(place - at)
            yield memoryview((c_char * (high - low)).from_address(low)).cast("B")
            at = place + high - low


def imaged(table: Table, arena: Array, calls: Sequence[tuple[int, int]]) -> tuple[Image, Constants]:
    """The image of a table, and the constants that it reads. Raises NoImage."""
    constants = Constants(array for entry in table.entries for array in entry.keep if not _within(array, arena))
    regions = ((ARENA, address(arena), arena.size), (TEMPORARY, address(table.temporary), table.temporary.size))
    words, kinds, rows = list[int](), list[int](), list[tuple[int, ...]]()
    objects: dict[bytes, int] = {}

    def place(word: int) -> None:
        for kind, start, size in regions:
            if start <= word < start + size:
                words.append(word - start)
                kinds.append(kind)
                return
        found = constants.place(word) if word else 0
        if found is None:
            raise NoImage("an address of other memory")
        words.append(found)
        kinds.append(CONSTANTS if word else NUMBER)

    for entry in table.entries:
        arguments = entry.arguments.tolist()
        for word in arguments[: entry.pointers]:
            place(word)
        words += arguments[entry.pointers :]
        kinds += [NUMBER] * (len(arguments) - entry.pointers)
        place(entry.ahead[0])
        code = objects.setdefault(entry.code.data, len(objects))
        rows.append((code, len(arguments), entry.pointers, entry.units, entry.is_shared, entry.ahead[1]))
    image = Image(
        arena.size,
        constants.nbytes,
        table.temporary.size,
        table.stride,
        np.array(words, np.uint64),
        np.array(kinds, np.uint8),
        np.array(rows, np.int64).reshape(-1, ENTRY),
        tuple(objects),
        tuple(calls),
    )
    return image, constants


def loaded(image: Image) -> list[Code]:
    """The code of an image. Raises ObjectInvalid, or OSError where no page may be executable."""
    return [load(object) for object in image.objects]


def table_of(
    image: Image, codes: Sequence[Code], constants: Array, target: Target, threads: int
) -> tuple[Table, Array]:
    """The table of an image over memory of its own, and its arena. `constants`: bytes, which several may read."""
    arena, temporary = aligned_bytes(image.arena), aligned_bytes(image.temporary)
    starts = np.array([0, address(arena), address(constants), address(temporary)], np.uint64)
    words = image.words + starts[image.kinds]
    entries: list[Entry] = []
    at = 0
    for code, count, pointers, units, is_shared, stride in image.entries.tolist():
        end = at + count
        ahead = int(words[end]), stride
        entries.append(Entry(codes[code], words[at:end], pointers, units, bool(is_shared), ahead, (constants,)))
        at = end + 1
    return Table(entries, target, threads, image.scratch, temporary), arena


def _within(array: Array, arena: Array) -> bool:
    low, high = byte_bounds(arena)
    return low <= address(array) < high
