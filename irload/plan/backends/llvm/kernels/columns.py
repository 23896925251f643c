"""Reductions across columns: vectors side by side along one axis, walked together through other axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import Loop
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.spans import Combine, nested
from irload.plan.backends.llvm.operands import read, write
from irload.record import record

TERMS = 128
"""Terms that are added one by one, before their sum is added to others: long sums would lose digits."""


def added(
    f: Function,
    axes: Sequence[Loop],
    places: list[Pointer],
    term: Callable[[list[Pointer], list[Any]], list[Any]],
    start: list[Vec],
    join: Combine,
) -> list[Vec]:
    """Sums, or another reduction by `join`, over all positions of the axes, at least one.

    `term(pointers, sums)` gives the sums with one more term; `start` are those without any.
    """
    *outer, last = axes

    def chunk(places: list[Pointer], totals: list[Vec], size: AnyInt) -> list[Vec]:
        sums = nested(f, [Loop(size, last.strides)], places, term, start)
        return [join(a, b) for a, b in zip(totals, sums, strict=True)]

    def line(places: list[Pointer], totals: list[Vec]) -> list[Vec]:
        chunks = last.size // TERMS
        whole = chunks * TERMS
        if whole != 0:
            every = [Loop(chunks, tuple(s * TERMS for s in last.strides))]
            totals = nested(f, every, places, lambda p, t: chunk(p, t, TERMS), totals)
        rest = last.size - whole
        if rest != 0:
            totals = chunk(moved(places, [whole * s for s in last.strides]), totals, rest)
        return totals

    return nested(f, outer, places, line, start)


@record()
class Columns:
    """Vectors side by side along one axis, from its position `first` on.

    `strides`: bytes between neighbours in each tensor; `counts`: the elements of each vector, None where it is whole.
    """

    lanes: int
    strides: tuple[AnyInt, ...]
    counts: Sequence[AnyInt | None]
    first: int = 0

    @property
    def positions(self) -> list[int]:
        """The first position of each vector."""
        return [self.first + k * self.lanes for k in range(len(self.counts))]

    def read(self, f: Function, pointers: Sequence[Pointer], tensor: int, element: str = F32) -> list[Vec]:
        """The vectors of a tensor. `pointers`: position 0 in each."""
        stride = self.strides[tensor]
        return [
            read(f, pointers[tensor], stride * position, stride, count, element)
            for position, count in zip(self.positions, self.counts, strict=True)
        ]

    def write(self, f: Function, values: Sequence[Vec], pointers: Sequence[Pointer], tensor: int) -> None:
        """Store vectors of f32."""
        stride = self.strides[tensor]
        for value, position, count in zip(values, self.positions, self.counts, strict=True):
            write(f, value, pointers[tensor], stride * position, stride, count)


def counts(size: int, lanes: int) -> list[int | None]:
    """The vectors of `size` positions: for each None, or its elements if it is partial."""
    rest = size % lanes
    return [None] * (size // lanes) + ([rest] if rest else [])


def partial_counts(f: Function, vectors: int, rest: AnyInt | None) -> list[AnyInt | None]:
    """The elements of each of some vectors side by side: None if all are whole; `rest` is the elements of all."""
    if rest is None:
        return [None] * vectors
    return [f.maximum(f.minimum(rest - k * f.lanes, f.lanes), 0) for k in range(vectors)]
