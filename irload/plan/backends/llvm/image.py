"""The format in which a file stores a table of kernels: object code, and addresses as offsets into memory.

An image runs a plan again without its graph, steps and descriptions of kernels.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from ctypes import c_char
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from irload.core.tensor import Array
from irload.plan.backends.compiled import NotStorable, StoredExecutable, StoredInvalid
from irload.plan.backends.llvm.kernel import address
from irload.plan.backends.llvm.loader import ObjectInvalid, load
from irload.plan.backends.llvm.runtime import Entry, Table, TableCall, nothing
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.memory.arena import aligned_bytes
from irload.record import record

NUMBER, ARENA, CONSTANTS, TEMPORARY = range(4)
"""The kinds of words: a number, or an offset into one of three kinds of memory."""
ENTRY = 6
"""The columns of an entry: object, words of arguments, addresses among them, units, whether threads share it, and the
bytes between the weights that consecutive threads prefetch. A word after the arguments is the address of the first.
"""


_ARRAYS = (("words", np.uint64), ("kinds", np.uint8), ("entries", np.int64))


@record(eq=False)
class Image:
    """Sizes of memory, words and their kinds, entries, objects, and calls.

    `calls`: the ranges of entries that run as one.
    """

    temporary: int
    scratch: int
    words: Array
    kinds: Array
    entries: Array
    objects: tuple[bytes, ...]
    calls: tuple[TableCall, ...]


class Constants:
    """The read-only memory of entries: stretches, and their offsets in a file."""

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
            place = self.nbytes + (low - self.nbytes) % LINE  # keep the alignment to cache lines
            self._places.append(place)
            self.nbytes = place + high - low

    def place(self, address: int) -> int | None:
        """The offset of the byte at an address; None if it belongs to other memory."""
        k = bisect_right(self._lows, address) - 1
        if k < 0 or address >= self._stretches[k][1]:
            return None
        return self._places[k] + address - self._lows[k]

    def pieces(self) -> Iterator[bytes | memoryview]:
        """All stretches in order, with zeros between them."""
        at = 0
        for (low, high), place in zip(self._stretches, self._places, strict=True):
            yield bytes(place - at)
            yield memoryview((c_char * (high - low)).from_address(low)).cast("B")
            at = place + high - low


def stored(table: Table, arena: Array, calls: Sequence[TableCall]) -> StoredExecutable:
    """The image of a table as bytes, and the constants that it reads. Raises NotStorable."""
    image, constants = imaged(table, arena, calls)
    return StoredExecutable(packed(image), constants.pieces(), constants.nbytes)


def imaged(table: Table, arena: Array, calls: Sequence[TableCall]) -> tuple[Image, Constants]:
    """The image of a table, and the constants that it reads. Raises NotStorable."""
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
            raise NotStorable("an address of other memory")
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
        table.temporary.size,
        table.stride,
        np.array(words, np.uint64),
        np.array(kinds, np.uint8),
        np.array(rows, np.int64).reshape(-1, ENTRY),
        tuple(objects),
        tuple(calls),
    )
    return image, constants


def packed(image: Image) -> bytes:
    """An image as bytes: a line of JSON, then its arrays and objects."""
    arrays = [getattr(image, name).tobytes() for name, _ in _ARRAYS]
    head = {
        "memory": [image.temporary, image.scratch],
        "arrays": [len(a) for a in arrays],
        "objects": [len(o) for o in image.objects],
        "calls": image.calls,
    }
    return b"".join([json.dumps(head).encode(), b"\n", *arrays, *image.objects])


def unpacked(data: bytes) -> Image:
    """The image that `packed` returned these bytes for."""
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    ends = list(accumulate([*head["arrays"], *head["objects"]], initial=0))
    cut = [rest[begin:end] for begin, end in pairwise(ends)]
    words, kinds, entries = (np.frombuffer(part, kind) for part, (_, kind) in zip(cut, _ARRAYS, strict=False))
    calls = tuple((first, last, parts) for first, last, parts in head["calls"])
    temporary, scratch = head["memory"]
    return Image(temporary, scratch, words, kinds, entries.reshape(-1, ENTRY), tuple(cut[len(_ARRAYS) :]), calls)


class LoadedImage:
    """An image with its code in memory. Raises StoredInvalid, or OSError if the system forbids executable memory."""

    def __init__(self, data: bytes, target: Target) -> None:
        self._image = unpacked(data)
        self._target = target
        try:
            self._codes = [load(object) for object in self._image.objects]
        except ObjectInvalid as error:
            raise StoredInvalid(str(error)) from None

    def bind(self, arena: Array, constants: Array, threads: int) -> RestoredTable:
        """The table over an arena and constants."""
        image = self._image
        temporary = aligned_bytes(image.temporary)
        starts = np.array([0, address(arena), address(constants), address(temporary)], np.uint64)
        words = image.words + starts[image.kinds]
        entries: list[Entry] = []
        at = 0
        for code, count, pointers, units, is_shared, stride in image.entries.tolist():
            end = at + count
            ahead, keep = (int(words[end]), stride), (arena, constants)
            entries.append(Entry(self._codes[code], words[at:end], pointers, units, bool(is_shared), ahead, keep))
            at = end + 1
        return RestoredTable(Table(entries, self._target, threads, image.scratch, temporary), image.calls)


@record()
class RestoredTable:
    """A table of kernels, and the ranges that run as one call."""

    table: Table
    calls: Sequence[TableCall]

    def run(self, context: Any) -> None:
        """Run all kernels. Raises LimitExceeded if the time limit of `context` is exceeded."""
        self.table.run_calls(self.calls, nothing if context is None else context.deadline.check)


def _within(array: Array, arena: Array) -> bool:
    low, high = byte_bounds(arena)
    return low <= address(array) < high
