"""The positions that give one result, walked by vectors along the row that they form, or across columns.

A formula is written once, for lists of vectors: a turn along a row has one of them, a turn across columns has several
side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import Loop
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.loops import nested, unrolled
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.shuffles import across
from irload.plan.backends.llvm.tuning import SPAN_CHAINS
from irload.record import record

TERMS = 128
"""Terms that are added one by one, before their sum is added to others: long sums would lose digits."""


@record(eq=False)
class Vectors:
    """The vectors of one turn, from number `first` on.

    `places`: the address of vector 0 in each tensor; `strides`: bytes between neighbours in each; `counts`: the
    elements of each vector, None if all are present.
    """

    f: Function
    places: list[Pointer]
    strides: Sequence[AnyInt]
    counts: Sequence[AnyInt | None]
    first: int = 0

    def read(self, tensor: int, element: str = F32) -> list[Vec]:
        """The vectors of a tensor, as f32."""
        place, stride = self.places[tensor], self.strides[tensor]
        return [read(self.f, place, stride * at, stride, count, element) for at, count in self._positions]

    def write(self, tensor: int, values: Sequence[Vec]) -> None:
        """Store vectors of f32."""
        place, stride = self.places[tensor], self.strides[tensor]
        for value, (at, count) in zip(values, self._positions, strict=True):
            write(self.f, value, place, stride * at, stride, count)

    def of(self, values: Sequence[Vec]) -> Sequence[Vec]:
        """The members for these vectors of a list for all vectors."""
        return values[self.first : self.first + len(self.counts)]

    @property
    def _positions(self) -> list[tuple[int, AnyInt | None]]:
        return [((self.first + k) * self.f.lanes, count) for k, count in enumerate(self.counts)]


Term = Callable[[Vectors, list[Vec]], list[Vec]]
"""(vectors, totals) → the totals with one more term each."""
Combine = Callable[[Vec, Vec], Vec]
"""Two partial results → one."""


@record(eq=False)
class Positions(ABC):
    """All positions of some axes, at least one. `places`: the first position in each tensor."""

    f: Function
    axes: Sequence[Loop]
    places: list[Pointer]

    @abstractmethod
    def fold(self, start: Vec, term: Term, combine: Combine) -> list[Vec]:
        """A reduction: the total of each vector, in all lanes that share a result. `start` is the neutral element."""

    @abstractmethod
    def walk(self, body: Callable[[Vectors], None]) -> None:
        """Write `body` for all vectors."""

    @abstractmethod
    def store(self, totals: Sequence[Vec]) -> None:
        """Store the results of a `fold`, one per row or column, in tensor 0."""


@record(eq=False)
class RowPositions(Positions):
    """Vectors follow the last axis, with independent partial results. Totals are in all lanes of one vector."""

    def fold(self, start: Vec, term: Term, combine: Combine) -> list[Vec]:
        f = self.f

        def body(vectors: Vectors, totals: list[Vec]) -> list[Vec]:
            (count,), (total,) = vectors.counts, term(vectors, totals)
            return [total if count is None else f.select(f.mask(count), total, totals[0])]

        return [across(f, reduce(combine, self._run(body, [start])), combine)]

    def walk(self, body: Callable[[Vectors], None]) -> None:
        def turn(vectors: Vectors, _: list[Vec]) -> list[Vec]:
            body(vectors)
            return []

        self._run(turn, [])

    def store(self, totals: Sequence[Vec]) -> None:
        Vectors(self.f, self.places, [0], [1]).write(0, totals)

    def _run(self, body: Term, start: list[Vec]) -> list[Vec]:
        """Each of several chains carries `start`; returns all at the end."""
        size, lanes = self.axes[-1].size, self.f.lanes
        chains = max(1, min(SPAN_CHAINS, size // lanes)) if isinstance(size, int) else SPAN_CHAINS

        def row(places: list[Pointer], carried: list[Any]) -> list[Any]:
            return self._row(places, body, carried, chains)

        return nested(self.f, self.axes[:-1], self.places, row, start * chains)

    def _row(self, places: list[Pointer], body: Term, state: list[Vec], chains: int) -> list[Vec]:
        f, size, strides = self.f, self.axes[-1].size, self.axes[-1].strides
        whole = size // f.lanes
        rest = size - whole * f.lanes
        each = len(state) // chains

        def vector(at: AnyInt, state: list[Vec], chain: int, count: AnyInt | None = None) -> list[Vec]:
            first, after = each * chain, each * (chain + 1)
            vectors = Vectors(f, moved(places, [at * f.lanes * s for s in strides]), strides, [count])
            return [*state[:first], *body(vectors, state[first:after]), *state[after:]]

        state = unrolled(f, 0, whole, chains, vector, state)
        if isinstance(rest, Int):
            return f.loop(0, f.minimum(rest, 1), 1, lambda _, state: vector(whole, state, chains - 1, rest), state)
        return vector(whole, state, chains - 1, rest) if rest else state


@record(eq=False)
class ColumnPositions(Positions):
    """Vectors follow another axis; one walk through the axes takes `together` of them.

    `group`: neighbouring columns that share a total. If more than one, `counts` are known, and `scratch` holds one f32
    per column.
    """

    strides: Sequence[AnyInt]
    counts: Sequence[AnyInt | None]
    together: int
    group: int
    scratch: Pointer

    def fold(self, start: Vec, term: Term, combine: Combine) -> list[Vec]:
        totals: list[Vec] = []
        for first in range(0, len(self.counts), self.together):
            totals += self._fold(first, start, term, combine)
        return totals if self.group == 1 else self._grouped(totals, combine)

    def walk(self, body: Callable[[Vectors], None]) -> None:
        for first in range(0, len(self.counts), self.together):

            def turn(places: list[Pointer], _: list[Any], first: int = first) -> list[Vec]:
                body(self._vectors(first, places))
                return []

            nested(self.f, self.axes, self.places, turn, [])

    def store(self, totals: Sequence[Vec]) -> None:
        Vectors(self.f, self.places, self.strides, self.counts).write(0, totals)

    def _vectors(self, first: int, places: list[Pointer]) -> Vectors:
        return Vectors(self.f, places, self.strides, self.counts[first : first + self.together], first)

    def _fold(self, first: int, start: Vec, term: Term, combine: Combine) -> list[Vec]:
        """The totals of the vectors of one walk."""
        f, (*outer, last) = self.f, self.axes
        starts = [start] * len(self.counts[first : first + self.together])

        def chunk(places: list[Pointer], totals: list[Vec], size: AnyInt) -> list[Vec]:
            axes = [Loop(size, last.strides)]
            sums = nested(f, axes, places, lambda p, sums: term(self._vectors(first, p), sums), starts)
            return [combine(a, b) for a, b in zip(totals, sums, strict=True)]

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

        return nested(f, outer, self.places, line, starts)

    def _grouped(self, totals: list[Vec], combine: Combine) -> list[Vec]:
        """The total of each group, in all of its columns."""
        f, nbytes = self.f, self.f.lanes * 4
        columns = sum(f.lanes if count is None else count for count in self.counts)
        for k, total in enumerate(totals):
            f.store(total, self.scratch, k * nbytes)

        def each(index: Int, _: list[Any]) -> None:
            first = self.scratch + index * (4 * self.group)

            def add(k: Int, total: list[Vec]) -> list[Vec]:
                return [combine(total[0], f.load_scalar(first, k * 4))]

            (total,) = f.loop(1, self.group, 1, add, [f.load_scalar(first)])
            f.loop(0, self.group, 1, lambda k, _: f.store_scalar(total, first, k * 4))

        f.loop(0, columns // self.group, 1, each)
        return [f.load(self.scratch, k * nbytes) for k in range(len(totals))]


def counts(size: int, lanes: int) -> Sequence[int | None]:
    """The vectors of `size` columns: for each None, or its elements if it is partial."""
    rest = size % lanes
    return [None] * (size // lanes) + ([rest] if rest else [])


def partial_counts(f: Function, vectors: int, rest: AnyInt) -> list[AnyInt | None]:
    """The elements of each of some vectors side by side, which have `rest` together."""
    return [f.maximum(f.minimum(rest - k * f.lanes, f.lanes), 0) for k in range(vectors)]
