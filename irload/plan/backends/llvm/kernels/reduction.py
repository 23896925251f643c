"""Reductions: along the axis on which vectors lie, or across it."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import prod

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, by_memory, offsets, unbounded
from irload.plan.backends.llvm.blocks import Blocks
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import element_of
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import across
from irload.plan.backends.llvm.spans import Span, added, counts, moved
from irload.plan.ir.steps import Reduce
from irload.record import record

LARGEST = 3.4028234663852886e38
TOGETHER = 4
"""Vectors of a row whose columns are reduced at the same time."""


def select_reduce(step: Reduce, selector: Selector) -> list[Launch]:
    """A reduction over any axes."""
    x, out = selector.stored(step.inputs[0]), selector.array(step.output)
    kept = [k for k in range(x.ndim) if k not in step.axes]
    strides = out.strides if len(kept) == out.ndim else tuple(out.strides[k] for k in kept)
    return [selector.launch(_kernel(step, x, kept, strides, selector.target.lanes), [out, x])]


def _kernel(step: Reduce, x: Array, kept: list[int], strides: tuple[int, ...], lanes: int) -> Kernel:
    outer = by_memory([Axis(x.shape[k], (s, x.strides[k])) for k, s in zip(kept, strides, strict=True)])
    inner = by_memory([Axis(x.shape[k], (x.strides[k], 0)) for k in step.axes])
    inner = [Axis(axis.size, (0, axis.strides[0])) for axis in inner] or [Axis(1, (0, x.itemsize))]
    nearer = [axis for axis in outer if 0 < abs(axis.strides[1]) < abs(inner[-1].strides[1])]
    if not nearer:
        return RowReduce(lanes, step.kind, tuple(outer), tuple(inner), element_of(x))
    columns = min(nearer, key=lambda axis: abs(axis.strides[1]))
    rows = [axis for axis in outer if axis is not columns]
    return ColumnReduce(lanes, step.kind, (*rows, columns), tuple(inner), element_of(x))


def start(f: Function, kind: str) -> Value:
    """What a reduction begins with. A maximum is at least the least f32: so is NumPy's where all else is NaN or −∞."""
    return f.number({"max": -LARGEST, "min": float("inf")}.get(kind, 0.0))


def combine(f: Function, kind: str, total: Value, value: Value) -> Value:
    """The total with one more value. Maxima and minima pass over NaN."""
    if kind in ("sum", "mean"):
        return f.arithmetic("fadd", total, value)
    taken = f.compare_floats("ogt" if kind == "max" else "olt", value, total)
    return f.select(taken, value, total)


def _finish(f: Function, kind: str, total: Value, size: int) -> Value:
    return f.arithmetic("fdiv", total, f.number(size)) if kind == "mean" else total


@record()
class RowReduce(Kernel):
    """Reduces the inner axes to one element for each position of the outer ones. Pointers: to, from."""

    lanes: int
    kind: str
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    element: str
    """How what is read is stored."""

    @property
    def code(self) -> RowReduce:
        return replace(self, outer=unbounded(self.outer))

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer)

    @property
    def cycles(self) -> float:
        return self.count * (30 + prod(axis.size for axis in self.inner) / 8)

    def write(self, function: Function) -> None:
        f, kind, span = function, self.kind, Span(self.lanes, self.inner)
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(2)]
        first = start(f, kind)

        def each(places: list[Value], count: int | None, carried: list[Value]) -> list[Value]:
            value = read(f, places[1], 0, span.strides[1], count, self.element)
            value = value if count is None else f.select(f.mask(count), value, first)
            return [combine(f, kind, carried[0], value)]

        def unit(index: Value, _: list[Value]) -> None:
            places = moved(f, pointers, offsets(f, index, self.outer, 2))
            (chains,) = span.walk(f, places, each, [first])
            total = reduce(lambda a, b: combine(f, kind, a, b), chains)
            total = _finish(f, kind, across(f, total, lambda a, b: combine(f, kind, a, b)), span.size)
            write(f, total, places[0], 0, 0, 1)

        f.loop(f["begin"], f["end"], 1, unit)


@record()
class ColumnReduce(Kernel):
    """Reduces the inner axes for vectors along the last of the outer ones. Pointers: to, from."""

    lanes: int
    kind: str
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    element: str
    """How what is read is stored."""

    @property
    def count(self) -> int:
        return self._blocks.count

    @property
    def cycles(self) -> float:
        return prod(axis.size for axis in self.outer) * prod(axis.size for axis in self.inner) / 6

    @property
    def _blocks(self) -> Blocks:
        width = self.lanes * TOGETHER
        size = max(width, 16384 // prod(axis.size for axis in self.inner))
        return Blocks(self.outer, width, 2, size)

    def write(self, function: Function) -> None:
        f, blocks = function, self._blocks
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(2)]
        strides = blocks.row.strides

        def row(places: list[Value], first: Int, last: Int) -> None:
            def vectors(at: Int, size: int) -> None:
                begin = moved(f, places, [f.multiply(at, blocks.lanes * s) for s in strides])
                totals = self._totals(f, begin, counts(size, self.lanes))
                for k, (total, count) in enumerate(zip(totals, counts(size, self.lanes), strict=True)):
                    write(f, total, begin[0], k * self.lanes * strides[0], strides[0], count)

            if blocks.vectors:
                f.loop(first, last, 1, lambda at, _: vectors(at, blocks.lanes))
            if blocks.rest:
                blocks.at_end(f, last, lambda: vectors(blocks.vectors, blocks.rest))

        blocks.walk(f, f["begin"], f["end"], pointers, row)

    def _totals(self, f: Function, begin: list[Value], parts: list[int | None]) -> list[Value]:
        """The results of some vectors next to each other."""
        along = self.lanes * self.outer[-1].strides[1]
        zero = [start(f, self.kind)] * len(parts)

        def term(places: list[Value], totals: list[Value]) -> list[Value]:
            values = [
                read(f, places[1], k * along, self.outer[-1].strides[1], count, self.element)
                for k, count in enumerate(parts)
            ]
            return [combine(f, self.kind, total, value) for total, value in zip(totals, values, strict=True)]

        totals = added(f, self.inner, begin, term, zero, lambda a, b: combine(f, self.kind, a, b))
        return [_finish(f, self.kind, total, prod(axis.size for axis in self.inner)) for total in totals]
