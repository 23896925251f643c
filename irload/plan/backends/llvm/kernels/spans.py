"""Reductions and maps along rows, the last of several axes, with partial results in parallel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from irload.plan.backends.llvm.arguments import Arguments, moved, walk_lines
from irload.plan.backends.llvm.axes import Axis, Loop, any_sizes, numbers, row_key, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import unrolled
from irload.plan.backends.llvm.shuffles import across
from irload.plan.backends.llvm.tuning import SPAN_CHAINS
from irload.record import record

Combine = Callable[[Vec, Vec], Vec]
"""Two partial results → one."""
SpanBody = Callable[[list[Pointer], AnyInt | None, list[Vec]], list[Vec]]
"""(pointers to a vector, its elements if it is partial, values carried) → values carried on."""


@record()
class Span:
    """All positions of some axes, at least one, vector by vector along the last of them."""

    lanes: int
    axes: Sequence[Loop]

    @property
    def strides(self) -> tuple[AnyInt, ...]:
        """Bytes between neighbours in a vector, for each tensor."""
        return self.axes[-1].strides

    def fold(
        self,
        f: Function,
        places: list[Pointer],
        start: Vec,
        term: Callable[[list[Pointer], AnyInt | None, Vec], Vec],
        combine: Combine,
    ) -> Vec:
        """A reduction, in all lanes: `term(pointers, elements if partial, total)` gives the total with one more vector.

        `places`: position 0 in each tensor. `start` is neutral. The lanes of a partial vector behind its elements do
        not count.
        """

        def body(at: list[Pointer], count: AnyInt | None, carried: list[Vec]) -> list[Vec]:
            total = term(at, count, carried[0])
            return [total if count is None else f.select(f.mask(count), total, carried[0])]

        return across(f, reduce(combine, self.walk(f, places, body, [start])), combine)

    def walk(self, f: Function, places: list[Pointer], body: SpanBody, start: Sequence[Vec] = ()) -> list[Vec]:
        """Write `body` for all vectors. Each of several independent chains carries `start`; returns all at the end.

        `places`: position 0 in each tensor.
        """
        size = self.axes[-1].size
        chains = max(1, min(SPAN_CHAINS, size // self.lanes)) if isinstance(size, int) else SPAN_CHAINS

        def row(inner: list[Pointer], carried: list[Any]) -> list[Any]:
            return self._row(f, inner, body, carried, chains)

        return nested(f, self.axes[:-1], places, row, [*start] * chains)

    def _row(self, f: Function, places: list[Pointer], body: SpanBody, state: list[Vec], chains: int) -> list[Vec]:
        size = self.axes[-1].size
        vectors = size // self.lanes
        rest = size - vectors * self.lanes
        each = len(state) // chains

        def vector(at: AnyInt, state: list[Vec], chain: int, count: AnyInt | None = None) -> list[Vec]:
            first, after = each * chain, each * (chain + 1)
            place = moved(places, [at * self.lanes * s for s in self.strides])
            return [*state[:first], *body(place, count, state[first:after]), *state[after:]]

        state = unrolled(f, 0, vectors, chains, vector, state)
        if isinstance(rest, Int):
            partial = f.minimum(rest, 1)
            return f.loop(0, partial, 1, lambda _, state: vector(vectors, state, chains - 1, rest), state)
        return vector(vectors, state, chains - 1, rest) if rest else state


SpanCode = Callable[[Span, list[Pointer]], None]
"""(span, pointers to position 0 in each tensor) → its code."""


@record()
class SpanKernel(Kernel):
    """A kernel whose units are spans: all positions of the inner axes for one position of the outer ones.

    The code reads all sizes except for short rows.
    """

    lanes: int
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]

    @property
    def code(self) -> SpanKernel:
        return replace(self, outer=(), inner=self.key)

    @property
    def numbers(self) -> tuple[int, ...]:
        *outer, rows = self.outer or [Axis(1, (0,) * len(self.contiguous))]
        lines = table(outer, len(self.contiguous))
        return (*self.own, *numbers(self.inner, self.key), rows.size, *rows.strides, *lines)

    @property
    def count(self) -> int:
        return size_of(self.outer)

    @property
    def own(self) -> tuple[int, ...]:
        """The numbers that `span_code` reads."""
        return ()

    @property
    @abstractmethod
    def contiguous(self) -> Sequence[int]:
        """The stride of each tensor along the last inner axis if it is contiguous."""

    @property
    def key(self) -> tuple[Axis, ...]:
        """The inner axes in the key of the code."""
        *axes, row = self.inner
        return (*any_sizes(axes), row_key(row, self.lanes, self.contiguous))

    @abstractmethod
    def span_code(self, f: Function, given: Arguments) -> SpanCode:
        """Read the kernel's other arguments, if any, and return a writer of the code of a span."""

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        pointers = given.pointers(len(self.contiguous))
        code = self.span_code(f, given)
        span = Span(self.lanes, given.loops(self.key))
        rows, strides, lines = given.integer(), given.integers(len(pointers)), given.table(len(pointers))

        def row(starts: list[Pointer], at: AnyInt) -> None:
            code(span, moved(starts, [at * stride for stride in strides]))

        walk_lines(f, rows, lines, pointers, row)


def nested(
    f: Function,
    axes: Sequence[Loop],
    places: list[Pointer],
    body: Callable[[list[Pointer], list[Any]], list[Any]],
    carried: list[Vec],
) -> list[Vec]:
    """`body(pointers, carried)` at every position of the axes, in loops; returns the values carried at the end."""
    if not axes:
        return body(places, carried)
    axis, *inner = axes

    def turn(at: AnyInt, carried: list[Vec]) -> list[Vec]:
        return nested(f, inner, moved(places, [at * s for s in axis.strides]), body, carried)

    return f.loop(0, axis.size, 1, turn, carried)
