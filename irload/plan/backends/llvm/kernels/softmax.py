"""Softmax: along the axis on which vectors lie, or across it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

from irload.plan.backends.llvm.axes import Axis, by_memory, offsets, unbounded
from irload.plan.backends.llvm.blocks import Blocks
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import across, shuffled, unzipped
from irload.plan.backends.llvm.spans import Span, counts, moved, nested
from irload.plan.backends.llvm.vector_math import exp_or_nothing
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.powers import least_exponent
from irload.plan.ir.steps import Softmax
from irload.record import record

TOGETHER = 2
"""Vectors across whose lanes softmax is computed at the same time."""
CYCLES = 20
"""Of one vector of 8 lanes, in all passes."""


def select_softmax(step: Softmax, selector: Selector) -> list[Launch]:
    """A softmax along any axis."""
    x, out = selector.array(step.inputs[0]), selector.array(step.output)
    axes = [Axis(n, (to, source)) for n, to, source in zip(x.shape, out.strides, x.strides, strict=True)]
    row = axes.pop(step.axis)
    others = by_memory(axes)
    short = _short(selector.target.lanes, others, row)
    if short is not None:
        return [selector.launch(short, [out, x])]
    columns = next((axis for axis in reversed(others) if axis.strides == (4, 4)), None)
    if columns is None or row.strides == (4, 4):
        return [selector.launch(RowSoftmax(selector.target.lanes, tuple(others), row), [out, x])]
    others.remove(columns)
    return [selector.launch(ColumnSoftmax(selector.target.lanes, (*others, columns), row), [out, x])]


def _larger(f: Function, a: Value, b: Value) -> Value:
    """The larger one; `b` where one is NaN: a row with NaN comes out as NaN through its sum."""
    return f.select(f.compare_floats("ogt", a, b), a, b)


def _short(lanes: int, others: Sequence[Axis], row: Axis) -> ShortSoftmax | None:
    """The kernel of rows that lie one behind the other, each no longer than a vector."""
    nbytes = 4 * row.size
    *outer, rows = others or [Axis(1, (nbytes, nbytes))]
    apart, pitch = row.strides[0], rows.strides[0]
    follows = row.size <= lanes and row.strides[1] == 4 and rows.strides[1] == nbytes
    if not follows or (pitch != 4 and (apart, pitch) != (4, nbytes)):
        return None
    return ShortSoftmax(lanes, tuple(outer), rows.size, row.size, apart)


@record()
class ShortSoftmax(Kernel):
    """e^(x − max) / Σ of each row, several rows of one vector at the same time. Pointers: to, from.

    Rows of `length` lie one behind the other. So do those that are made, where their elements are 4 bytes `apart`; else
    equal elements of all rows do. In a vector each row takes a number of lanes that is a power of 2.
    """

    lanes: int
    outer: tuple[Axis, ...]
    rows: int
    length: int
    apart: int

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer) * self._blocks

    @property
    def cycles(self) -> float:
        return self.count * self._together * 3 * CYCLES

    @property
    def _blocks(self) -> int:
        """Blocks of as many rows as there are lanes."""
        return -(-self.rows // self.lanes)

    @property
    def _together(self) -> int:
        """The lanes of a row, and the vectors of a block."""
        return 1 << (self.length - 1).bit_length()

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(2)]
        last = self.rows - (self._blocks - 1) * self.lanes

        def unit(index: Value, _: list[Value]) -> None:
            at, block = f.divmod(index, self._blocks)
            first = f.multiply(block, self.lanes)
            pitch = 4 * self.length if self.apart == 4 else 4
            steps = [f.multiply(first, pitch), f.multiply(first, 4 * self.length)]
            to, source = moved(f, moved(f, pointers, offsets(f, at, self.outer, 2)), steps)

            def rows(count: int) -> Callable[[], None]:
                return lambda: self._write_rows(f, to, source, count)

            if last == self.lanes or self._blocks == 1:
                rows(last)()
            else:
                f.when(f.compare("eq", block, self._blocks - 1), rows(last), rows(self.lanes))

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_rows(self, f: Function, to: Value, source: Value, rows: int) -> None:
        each = self.lanes // self._together
        counts = [self.length * min(max(rows - k * each, 0), each) for k in range(self._together)]
        places = [4 * self.length * each * k for k in range(self._together)]
        made = [
            self._softmax(f, f.load(source, place, count)) if count else f.zero()
            for place, count in zip(places, counts, strict=True)
        ]
        if self.apart == 4:
            for vector, place, count in zip(made, places, counts, strict=True):
                if count:
                    f.store(self._closed(f, vector), to, place, count)
        else:
            for k, column in enumerate(unzipped(f, made)[: self.length]):
                f.store(column, to, k * self.apart, rows)

    def _softmax(self, f: Function, x: Value) -> Value:
        """That of rows one behind the other, each in its lanes."""
        together = self._together
        if self.length < together:
            beyond = [k % together >= self.length for k in range(self.lanes)]
            own = [k // together * self.length + k % together for k in range(self.lanes)]
            lanes = [self.lanes if b else n for b, n in zip(beyond, own, strict=True)]
            x = shuffled(f, x, f.number(float("-inf")), lanes)
        top = across(f, x, lambda a, b: _larger(f, a, b), together)
        e = exp_or_nothing(Vector(f, x) - Vector(f, top), least_exponent(self.length))
        total = across(f, e.value, lambda a, b: f.arithmetic("fadd", a, b), together)
        return (e * (1.0 / Vector(f, total))).value

    def _closed(self, f: Function, x: Value) -> Value:
        """The rows one behind the other again."""
        lanes = [k // self.length * self._together + k % self.length for k in range(self.lanes)]
        return x if self.length == self._together else shuffled(f, x, x, [min(k, self.lanes - 1) for k in lanes])


@record()
class RowSoftmax(Kernel):
    """e^(x − max) / Σ of each row. Pointers: to, from."""

    lanes: int
    outer: tuple[Axis, ...]
    row: Axis

    @property
    def code(self) -> RowSoftmax:
        return replace(self, outer=unbounded(self.outer))

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer)

    @property
    def cycles(self) -> float:
        return self.count * (60 + self.row.size / 8 * CYCLES)

    def write(self, function: Function) -> None:
        f, span = function, Span(self.lanes, (self.row,))
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(2)]
        to, source = self.row.strides
        least = f.number(float("-inf"))

        def unit(index: Value, _: list[Value]) -> None:
            places = moved(f, pointers, offsets(f, index, self.outer, 2))

            def largest(at: list[Value], count: int | None, carried: list[Value]) -> list[Value]:
                x = read(f, at[1], 0, source, count)
                return [_larger(f, x if count is None else f.select(f.mask(count), x, least), carried[0])]

            (chains,) = span.walk(f, places, largest, [least])
            top = across(f, reduce(lambda a, b: _larger(f, a, b), chains), lambda a, b: _larger(f, a, b))

            def power(at: list[Value], count: int | None, carried: list[Value]) -> list[Value]:
                lowered = Vector(f, read(f, at[1], 0, source, count)) - Vector(f, top)
                e = exp_or_nothing(lowered, least_exponent(self.row.size)).value
                write(f, e, at[0], 0, to, count)
                return [f.arithmetic("fadd", carried[0], e if count is None else f.select(f.mask(count), e, f.zero()))]

            (chains,) = span.walk(f, places, power, [f.zero()])
            total = reduce(lambda a, b: f.arithmetic("fadd", a, b), chains)
            scale = 1.0 / Vector(f, across(f, total, lambda a, b: f.arithmetic("fadd", a, b)))

            def scaled(at: list[Value], count: int | None, _: list[Value]) -> list[Value]:
                write(f, (Vector(f, read(f, at[0], 0, to, count)) * scale).value, at[0], 0, to, count)
                return []

            span.walk(f, places, scaled)

        f.loop(f["begin"], f["end"], 1, unit)


@record()
class ColumnSoftmax(Kernel):
    """e^(x − max) / Σ along the row, for vectors along the last of the outer axes. Pointers: to, from."""

    lanes: int
    outer: tuple[Axis, ...]
    row: Axis

    @property
    def count(self) -> int:
        return self._blocks.count

    @property
    def cycles(self) -> float:
        return prod(axis.size for axis in self.outer) * self.row.size / 8 * CYCLES

    @property
    def _blocks(self) -> Blocks:
        width = self.lanes * TOGETHER
        return Blocks(self.outer, width, 2, max(width, 4096 // self.row.size))

    def write(self, function: Function) -> None:
        f, blocks = function, self._blocks
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(2)]

        def row(places: list[Value], first: Int, last: Int) -> None:
            def vectors(at: Int, size: int) -> None:
                self._vectors(f, moved(f, places, [f.multiply(at, 4 * blocks.lanes)] * 2), counts(size, self.lanes))

            if blocks.vectors:
                f.loop(first, last, 1, lambda at, _: vectors(at, blocks.lanes))
            if blocks.rest:
                blocks.at_end(f, last, lambda: vectors(blocks.vectors, blocks.rest))

        blocks.walk(f, f["begin"], f["end"], pointers, row)

    def _vectors(self, f: Function, begin: list[Value], parts: list[int | None]) -> None:
        """Some vectors next to each other."""
        axes, least = [self.row], least_exponent(self.row.size)

        def load(place: Value, k: int) -> Value:
            return f.load(place, 4 * self.lanes * k, parts[k])

        def largest(at: list[Value], carried: list[Value]) -> list[Value]:
            return [_larger(f, load(at[1], k), top) for k, top in enumerate(carried)]

        tops = nested(f, axes, begin, largest, [f.number(float("-inf"))] * len(parts))

        def power(at: list[Value], carried: list[Value]) -> list[Value]:
            powers = [exp_or_nothing(Vector(f, load(at[1], k)) - Vector(f, top), least) for k, top in enumerate(tops)]
            for k, e in enumerate(powers):
                f.store(e.value, at[0], 4 * self.lanes * k, parts[k])
            return [(e + Vector(f, total)).value for e, total in zip(powers, carried, strict=True)]

        totals = nested(f, axes, begin, power, [f.zero()] * len(parts))
        scales = [1.0 / Vector(f, total) for total in totals]

        def scaled(at: list[Value], _: list[Value]) -> list[Value]:
            for k, scale in enumerate(scales):
                f.store((Vector(f, load(at[0], k)) * scale).value, at[0], 4 * self.lanes * k, parts[k])
            return []

        nested(f, axes, begin, scaled, [])
