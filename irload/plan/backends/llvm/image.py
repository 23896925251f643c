"""Images: tables of kernels in a file, with object code, and with offsets into memory instead of addresses.

A cached plan runs from its image; its graph, steps and kernel records are not needed.
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
from irload.plan.backends.compiled import NotStorable, StoredInvalid
from irload.plan.backends.llvm.kernel import Launch, address
from irload.plan.backends.llvm.launching import TableRows
from irload.plan.backends.llvm.loader import ObjectInvalid, load
from irload.plan.backends.llvm.parts import PROPERTIES, Codes
from irload.plan.backends.llvm.runtime import KernelTable, TableCall, working_memory
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.backends.llvm.team import AHEAD, AHEAD_STRIDE, SHARED, UNITS
from irload.plan.memory.arena import aligned_bytes
from irload.record import record

NUMBER, ARENA, CONSTANTS, TEMPORARY = range(4)
"""The kinds of words: a number, or an offset into one of three kinds of memory."""
COLUMNS = 5
"""The number of columns of `entries`: index of the object file, number of words of arguments, units, whether threads
share the kernel, and the bytes between the weights that consecutive threads prefetch. The word after the arguments is
the address of the weights that the first thread prefetches.
"""

_ARRAYS = (("words", np.uint64), ("kinds", np.uint8), ("entries", np.int64))


@record(eq=False)
class Image:
    """The contents of an image.

    `temporary`: bytes of temporary memory; `scratch`: bytes of scratch memory per thread; `kinds`: the kind of each of
    the `words`; `entries`: a row of COLUMNS numbers per kernel; `objects`: object files; `calls`: the ranges of entries
    that run in one call.
    """

    temporary: int
    scratch: int
    words: Array
    kinds: Array
    entries: Array
    objects: tuple[bytes, ...]
    calls: tuple[TableCall, ...]


class Constants:
    """The read-only memory of entries: address ranges (stretches), and their offsets in a file."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._stretches: list[tuple[int, int]] = []
        for low, high in sorted({byte_bounds(a) for a in arrays if a.size}):
            if self._stretches and low <= self._stretches[-1][1]:
                self._stretches[-1] = self._stretches[-1][0], max(high, self._stretches[-1][1])
            else:
                self._stretches.append((low, high))
        self._lows = [low for low, _ in self._stretches]
        self._offsets: list[int] = []
        self.nbytes = 0
        for low, high in self._stretches:
            place = self.nbytes + (low - self.nbytes) % LINE  # keep the alignment to cache lines
            self._offsets.append(place)
            self.nbytes = place + high - low

    def offset(self, address: int) -> int | None:
        """The offset of the byte at an address; None if it belongs to other memory."""
        k = bisect_right(self._lows, address) - 1
        if k < 0 or address >= self._stretches[k][1]:
            return None
        return self._offsets[k] + address - self._lows[k]

    def pieces(self) -> Iterator[bytes | memoryview]:
        """All stretches in order, with zeros between them."""
        at = 0
        for (low, high), place in zip(self._stretches, self._offsets, strict=True):
            yield bytes(place - at)
            yield memoryview((c_char * (high - low)).from_address(low)).cast("B")
            at = place + high - low


def imaged(
    rows: TableRows, launches: Sequence[Launch], codes: Codes, arena: Array, calls: Sequence[TableCall]
) -> tuple[Image, Constants]:
    """The image of a table with a row for each launch, and the constants that it reads. Raises NotStorable."""
    arrays = (array for launch in launches for array in launch.keep)
    constants = Constants(array for array in arrays if not _within(array, arena))
    memory = ((ARENA, arena), (TEMPORARY, rows.temporary))
    words, kinds, entries = list[int](), list[int](), list[tuple[int, ...]]()
    objects: dict[bytes, int] = {}

    def add_address(word: int) -> None:
        for kind, buffer in memory:
            if address(buffer) <= word < address(buffer) + buffer.size:
                words.append(word - address(buffer))
                kinds.append(kind)
                return
        offset = constants.offset(word) if word else 0
        if offset is None:
            raise NotStorable("an address of other memory")
        words.append(offset)
        kinds.append(CONSTANTS if word else NUMBER)

    firsts = (rows.form.firsts + PROPERTIES).tolist()
    for row, launch, first in zip(rows.rows.tolist(), launches, firsts, strict=False):
        pointers, count = len(launch.pointers), len(launch.pointers) + len(launch.kernel.numbers)
        arguments = rows.records[first : first + count].view(np.uint64).tolist()
        for word in arguments[:pointers]:
            add_address(word)
        words += arguments[pointers:]
        kinds += [NUMBER] * (count - pointers)
        add_address(row[AHEAD])
        code = objects.setdefault(codes.code(launch.kernel.code).data, len(objects))
        entries.append((code, count, row[UNITS], row[SHARED], row[AHEAD_STRIDE]))
    image = Image(
        rows.temporary.size,
        rows.stride,
        np.array(words, np.uint64),
        np.array(kinds, np.uint8),
        np.array(entries, np.int64).reshape(-1, COLUMNS),
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
    """The inverse of `packed`."""
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    ends = list(accumulate([*head["arrays"], *head["objects"]], initial=0))
    cut = [rest[begin:end] for begin, end in pairwise(ends)]
    words, kinds, entries = (np.frombuffer(part, kind) for part, (_, kind) in zip(cut, _ARRAYS, strict=False))
    calls = tuple((first, last, parts) for first, last, parts in head["calls"])
    temporary, scratch = head["memory"]
    return Image(temporary, scratch, words, kinds, entries.reshape(-1, COLUMNS), tuple(cut[len(_ARRAYS) :]), calls)


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
        """The table bound to an arena and to constants."""
        image = self._image
        temporary = aligned_bytes(image.temporary)
        starts = np.array([0, address(arena), address(constants), address(temporary)], np.uint64)
        words = (image.words + starts[image.kinds]).view(np.int64)
        codes, counts, units, shared, strides = image.entries.T
        ends = np.cumsum(counts + 1) - 1
        functions = np.array([code.address for code in self._codes], np.int64)
        arguments = address(words) + 8 * (ends - counts)
        rows = np.stack([functions[codes], arguments, units, shared, words[ends], strides], 1)
        scratch, keep = working_memory("scratch", image.scratch * threads), (self._codes, words, arena, constants)
        return RestoredTable(
            KernelTable(rows, self._target, threads, image.scratch, scratch, temporary, keep), image.calls
        )


@record()
class RestoredTable:
    """A table of kernels, and the ranges that run as one call."""

    table: KernelTable
    calls: Sequence[TableCall]

    def run(self, context: Any) -> None:
        """Run all kernels. Raises LimitExceeded if the time limit of `context` is exceeded."""
        self.table.run_calls(self.calls, context)


def _within(array: Array, arena: Array) -> bool:
    low, high = byte_bounds(arena)
    return low <= address(array) < high
