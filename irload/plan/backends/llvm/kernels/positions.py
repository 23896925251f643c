"""Loops over all positions that contribute to a result, with vectors along rows or across columns.

A formula is written once, for lists of vectors: an iteration along a row has one vector, an iteration across columns
has several adjacent vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import AxisLoop
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.loops import nested, unrolled
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.shuffles import across
from irload.plan.backends.llvm.tuning import SPAN_CHAINS
from irload.record import record

TERMS = 128
"""Terms per partial sum. Partial sums keep long sums accurate."""


@record(eq=False)
class Vectors:
    """The vectors of one iteration; the first is vector number `first`.

    `addresses`: of vector 0 in each tensor; `strides`: of the elements in each tensor, in bytes; `counts`: the elements
    of each vector, None for a whole vector.
    """

    f: Function
    addresses: list[Pointer]
    strides: Sequence[AnyInt]
    counts: Sequence[AnyInt | None]
    first: int = 0

    def read(self, tensor: int, element: str = F32) -> list[Vec]:
        """The vectors of a tensor: i32 and i64 unchanged, others as f32."""
        address, stride = self.addresses[tensor], self.strides[tensor]
        return [read(self.f, address, stride * at, stride, count, element) for at, count in self._positions]

    def write(self, tensor: int, values: Sequence[Vec], element: str = F32) -> None:
        """Store vectors of a tensor."""
        address, stride = self.addresses[tensor], self.strides[tensor]
        for value, (at, count) in zip(values, self._positions, strict=True):
            write(self.f, value, address, stride * at, stride, count, element)

    def of(self, values: Sequence[Vec]) -> Sequence[Vec]:
        """The part of a list with one item per vector that belongs to the vectors of this iteration."""
        return values[self.first : self.first + len(self.counts)]

    @property
    def _positions(self) -> list[tuple[int, AnyInt | None]]:
        return [((self.first + k) * self.f.lanes, count) for k, count in enumerate(self.counts)]


Combine = Callable[[Vec, Vec], Vec]
"""Two partial results → one."""


@record(eq=False)
class Positions(ABC):
    """All positions of one or more axes. `addresses`: the address of the first position in each tensor."""

    f: Function
    axes: Sequence[AxisLoop]
    addresses: list[Pointer]

    @abstractmethod
    def fold(self, totals: list[Vec], combine: Combine) -> Iterator[Vectors]:
        """`for vectors in positions.fold(totals, combine)`: a reduction. The body adds one term to each of the totals.

        Before the loop, `totals` contains the neutral element; afterwards, the total of each vector, in all lanes that
        share the total.
        """

    @abstractmethod
    def walk(self) -> Iterator[Vectors]:
        """`for vectors in positions.walk()`: all vectors."""

    @abstractmethod
    def store(self, totals: Sequence[Vec], element: str = F32) -> None:
        """Store the results of a `fold`, one per row or column, in tensor 0."""


@record(eq=False)
class RowPositions(Positions):
    """Vectors along the last axis, with several independent accumulators. The total is in all lanes of one vector."""

    def fold(self, totals: list[Vec], combine: Combine) -> Iterator[Vectors]:
        f, chains = self.f, totals * self._chains
        for vectors, chain in self._run(chains):
            (count,) = vectors.counts
            totals[:] = [chains[chain]]
            yield vectors
            chains[chain] = totals[0] if count is None else f.select(f.mask(count), totals[0], chains[chain])
        totals[:] = [across(f, reduce(combine, chains), combine)]

    def walk(self) -> Iterator[Vectors]:
        for vectors, _ in self._run([]):
            yield vectors

    def store(self, totals: Sequence[Vec], element: str = F32) -> None:
        Vectors(self.f, self.addresses, [0], [1]).write(0, totals, element)

    @property
    def _chains(self) -> int:
        """The number of independent accumulators that are used. They add the same terms if the code reads the size."""
        size = self.axes[-1].size
        if not isinstance(size, int) or size >= SPAN_CHAINS * self.f.lanes:
            return SPAN_CHAINS
        return 1 if size <= self.f.lanes or size % self.f.lanes == 0 else 2

    def _run(self, carried: list[Any]) -> Iterator[tuple[Vectors, int]]:
        """All vectors, each with the index of its accumulator."""
        f, (*outer, row), last = self.f, self.axes, min(self._chains - 1, 1)

        def vectors(addresses: list[Pointer], at: AnyInt, count: AnyInt | None) -> Vectors:
            return Vectors(f, moved(addresses, [at * f.lanes * s for s in row.strides]), row.strides, [count])

        for addresses in nested(f, outer, self.addresses, carried):
            whole = row.size // f.lanes
            rest = row.size - whole * f.lanes
            for at, chain in unrolled(f, 0, whole, SPAN_CHAINS, carried):
                yield vectors(addresses, at, None), chain
            if isinstance(rest, Int):
                for _ in f.range(0, f.minimum(rest, 1), 1, carried):
                    yield vectors(addresses, whole, rest), last
            elif rest:
                yield vectors(addresses, whole, rest), last


@record(eq=False)
class ColumnPositions(Positions):
    """Vectors along another axis, the columns; each loop over the axes processes `together` vectors.

    `group`: neighbouring columns that share a total. If more than one, `counts` are ints, and `scratch` has one f32 per
    column.
    """

    strides: Sequence[AnyInt]
    counts: Sequence[AnyInt | None]
    together: int
    group: int
    scratch: Pointer

    def fold(self, totals: list[Vec], combine: Combine) -> Iterator[Vectors]:
        start, results = totals[0], list[Vec]()
        for first in range(0, len(self.counts), self.together):
            partial = [start] * len(self.counts[first : first + self.together])
            yield from self._fold(first, partial, totals, combine)
            results += partial
        totals[:] = results if self.group == 1 else self._grouped(results, combine)

    def walk(self) -> Iterator[Vectors]:
        for first in range(0, len(self.counts), self.together):
            for addresses in nested(self.f, self.axes, self.addresses):
                yield self._vectors(first, addresses)

    def store(self, totals: Sequence[Vec], element: str = F32) -> None:
        Vectors(self.f, self.addresses, self.strides, self.counts).write(0, totals, element)

    def _vectors(self, first: int, addresses: list[Pointer]) -> Vectors:
        return Vectors(self.f, addresses, self.strides, self.counts[first : first + self.together], first)

    def _fold(self, first: int, partial: list[Vec], totals: list[Vec], combine: Combine) -> Iterator[Vectors]:
        """Loop over the axes for some vectors, and store their totals in `partial`. The body adds to `totals`."""
        f, (*outer, last), starts = self.f, self.axes, list(partial)

        def chunk(addresses: list[Pointer], size: AnyInt) -> Iterator[Vectors]:
            totals[:] = starts
            for at in nested(f, [AxisLoop(size, last.strides)], addresses, totals):
                yield self._vectors(first, at)
            partial[:] = [combine(a, b) for a, b in zip(partial, totals, strict=True)]

        for addresses in nested(f, outer, self.addresses, partial):
            chunks = last.size // TERMS
            whole = chunks * TERMS
            if whole != 0:
                chunk_axis = [AxisLoop(chunks, tuple(s * TERMS for s in last.strides))]
                for begin in nested(f, chunk_axis, addresses, partial):
                    yield from chunk(begin, TERMS)
            rest = last.size - whole
            if rest != 0:
                yield from chunk(moved(addresses, [whole * s for s in last.strides]), rest)

    def _grouped(self, totals: list[Vec], combine: Combine) -> list[Vec]:
        """The total of each group, in all of its columns."""
        f, nbytes = self.f, self.f.lanes * 4
        columns = sum(f.lanes if count is None else count for count in self.counts)
        for k, total in enumerate(totals):
            f.store(total, self.scratch, k * nbytes)
        for index in f.range(0, columns // self.group):
            first = self.scratch + index * (4 * self.group)
            sums = [f.load_scalar(first)]
            for k in f.range(1, self.group, 1, sums):
                sums[0] = combine(sums[0], f.load_scalar(first, k * 4))
            for k in f.range(0, self.group):
                f.store_scalar(sums[0], first, k * 4)
        return [f.load(self.scratch, k * nbytes) for k in range(len(totals))]


def counts(size: int, lanes: int) -> Sequence[int | None]:
    """The vectors of `size` columns: None for a whole vector, or the elements of a partial one."""
    rest = size % lanes
    return [None] * (size // lanes) + ([rest] if rest else [])


def partial_counts(f: Function, vectors: int, rest: AnyInt) -> list[AnyInt | None]:
    """The number of elements of each of `vectors` adjacent vectors, which have `rest` elements together."""
    return [f.maximum(f.minimum(rest - k * f.lanes, f.lanes), 0) for k in range(vectors)]
