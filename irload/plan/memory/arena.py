"""The arena: one buffer for all values of a plan, with offsets chosen from lifetimes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from heapq import heappop, heappush

import numpy as np

from irload.core.tensor import Array
from irload.record import record

ALIGNMENT = 64


@record()
class Lifetime:
    """The size of one buffer in bytes, and the first and last step between which its contents are needed."""

    size: int
    first: int
    last: int


MANY = 2_000
"""Above this number of buffers, offsets are assigned in order of production, which avoids quadratic time."""


def assign_offsets(lifetimes: Mapping[int, Lifetime]) -> tuple[dict[int, int], int]:
    """Return an offset for every buffer, and the size of the arena."""
    return _by_size(lifetimes) if len(lifetimes) <= MANY else _by_time(lifetimes)


def _by_size(lifetimes: Mapping[int, Lifetime]) -> tuple[dict[int, int], int]:
    """Assign the largest buffers first, each to the lowest gap among buffers with an overlapping lifetime."""
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, int, int]] = []
    """(start, end, first, last) of each buffer, sorted by start."""
    total = 0
    for key in sorted(lifetimes, key=lambda k: (-lifetimes[k].size, lifetimes[k].first)):
        life = lifetimes[key]
        size = _aligned(life.size)
        at = 0
        for start, end, first, last in placed:
            if last < life.first or life.last < first:
                continue
            if start - at >= size:
                break
            at = max(at, end)
        offsets[key] = at
        insort(placed, (at, at + size, life.first, life.last))
        total = max(total, at + size)
    return offsets, total


def _by_time(lifetimes: Mapping[int, Lifetime]) -> tuple[dict[int, int], int]:
    """Assign each buffer, at its first write, to the smallest gap that fits; free it after its last use."""
    offsets: dict[int, int] = {}
    gaps = _Gaps()
    alive: list[tuple[int, int, int]] = []
    """A heap of (last, start, size): the buffer whose lifetime ends first is first."""
    for key in sorted(lifetimes, key=lambda k: (lifetimes[k].first, -lifetimes[k].size)):
        life = lifetimes[key]
        while alive and alive[0][0] < life.first:
            _, start, size = heappop(alive)
            gaps.give(start, size)
        size = _aligned(life.size)
        offsets[key] = gaps.take(size)
        heappush(alive, (life.last, offsets[key], size))
    return offsets, gaps.total


class _Gaps:
    """The free ranges of a growing arena; adjacent ranges are merged."""

    def __init__(self) -> None:
        self.total = 0
        self._by_size: list[tuple[int, int]] = []
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}

    def take(self, size: int) -> int:
        """Return the start of `size` bytes in the smallest range that fits, otherwise at the end of the arena."""
        k = bisect_left(self._by_size, (size, 0))
        if k < len(self._by_size):
            length, start = self._by_size[k]
            self._drop(start)
            if length > size:
                self._add(start + size, start + length)
            return start
        start = self._start_of.get(self.total, self.total)  # grow the range at the end
        if start < self.total:
            self._drop(start)
        self.total = start + size
        return start

    def give(self, start: int, size: int) -> None:
        """Free a range."""
        end = start + size
        if end in self._end_of:
            after = self._end_of[end]
            self._drop(end)
            end = after
        if start in self._start_of:
            before = self._start_of[start]
            self._drop(before)
            start = before
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        insort(self._by_size, (end - start, start))
        self._end_of[start], self._start_of[end] = end, start

    def _drop(self, start: int) -> None:
        end = self._end_of.pop(start)
        del self._start_of[end]
        del self._by_size[bisect_left(self._by_size, (end - start, start))]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def aligned_bytes(size: int, alignment: int = ALIGNMENT) -> Array:
    """Return uninitialised bytes aligned to `alignment`."""
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size]
