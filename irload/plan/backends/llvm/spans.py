"""What row kernels go through: spans of several axes, vector by vector along the last one, with sums carried along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.record import record

CHAINS = 4
"""Sums carried side by side, so that none waits for the one before."""

TERMS = 128
"""Terms that are added one by one, before their sum is added to others: long sums would lose digits."""

Body = Callable[[list[Value], int | None, list[Value]], list[Value]]
"""(pointers to a vector's first position, its count where it is not whole, what is carried) → what is carried on."""


@record()
class Span:
    """All positions of some axes, at least one."""

    lanes: int
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """The positions."""
        return prod(axis.size for axis in self.axes)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours in a vector, for each tensor."""
        return self.axes[-1].strides

    def walk(self, f: Function, places: list[Value], body: Body, start: Sequence[Value] = ()) -> list[list[Value]]:
        """Write `body` for all vectors. For each of `start`, it gives what several chains carried to the end.

        `places`: position 0 in each tensor.
        """
        chains = max(1, min(CHAINS, self.axes[-1].size // self.lanes))
        state = nested(
            f,
            self.axes[:-1],
            places,
            lambda inner, carried: self._row(f, inner, body, carried, chains),
            [*start] * chains,
        )
        return [state[k :: len(start)] for k in range(len(start))]

    def _row(self, f: Function, places: list[Value], body: Body, state: list[Value], chains: int) -> list[Value]:
        vectors, rest = divmod(self.axes[-1].size, self.lanes)
        each = len(state) // chains

        def vector(at: list[Value], index: int, state: list[Value], chain: int, count: int | None = None) -> None:
            own = slice(each * chain, each * (chain + 1))
            state[own] = body(moved(f, at, [index * self.lanes * s for s in self.strides]), count, state[own])

        def turn(first: Value, state: list[Value]) -> list[Value]:
            at, state = moved(f, places, [f.multiply(first, self.lanes * s) for s in self.strides]), list(state)
            for k in range(chains):
                vector(at, k, state, k)
            return state

        whole = vectors - vectors % chains
        if whole:
            state = f.loop(0, whole, chains, turn, state)
        state = list(state)
        for k in range(whole, vectors):
            vector(places, k, state, k - whole)
        if rest:
            vector(places, vectors, state, (vectors - whole) % chains, rest)
        return state


def nested(
    f: Function,
    axes: Sequence[Axis],
    places: list[Value],
    body: Callable[[list[Value], list[Value]], list[Value]],
    carried: list[Value],
) -> list[Value]:
    """`body(pointers, carried)` at every position of the axes, in loops; gives what is carried at the end."""
    if not axes:
        return body(places, carried)
    axis, *inner = axes

    def turn(at: Value, carried: list[Value]) -> list[Value]:
        return nested(f, inner, moved(f, places, [f.multiply(at, s) for s in axis.strides]), body, carried)

    return f.loop(0, axis.size, 1, turn, carried)


def added(
    f: Function,
    axes: Sequence[Axis],
    places: list[Value],
    term: Callable[[list[Value], list[Value]], list[Value]],
    start: list[Value],
    join: Callable[[Value, Value], Value],
) -> list[Value]:
    """Sums, or what else `join` makes of two, over all positions of the axes, at least one.

    `term(pointers, sums)` gives the sums with one more term; `start` are those without any.
    """
    *outer, last = axes

    def chunk(places: list[Value], totals: list[Value], size: int) -> list[Value]:
        sums = nested(f, [Axis(size, last.strides)], places, term, start)
        return [join(a, b) for a, b in zip(totals, sums, strict=True)]

    def line(places: list[Value], totals: list[Value]) -> list[Value]:
        whole, rest = divmod(last.size, TERMS)
        if whole:
            chunks = Axis(whole, tuple(TERMS * s for s in last.strides))
            totals = nested(f, [chunks], places, lambda p, t: chunk(p, t, TERMS), totals)
        if rest:
            behind = moved(f, places, [whole * TERMS * s for s in last.strides])
            totals = chunk(behind, totals, rest)
        return totals

    return nested(f, outer, places, line, start)


def moved(f: Function, places: Sequence[Value], distances: Sequence[Int]) -> list[Value]:
    """Pointers, each so many bytes further on."""
    return [f.at(p, d) for p, d in zip(places, distances, strict=True)]


def counts(size: int, lanes: int) -> list[int | None]:
    """The vectors of `size` positions: for each None, or its count where it is not whole."""
    rest = size % lanes
    return [None] * (size // lanes) + ([rest] if rest else [])
