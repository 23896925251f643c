"""Reductions: along the axis on which vectors lie, or across it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments, float_word, moved
from irload.plan.backends.llvm.axes import ANY, Axis, any_sizes, by_memory, numbers, size_of, strides_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES, element_of
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, RowCode, VectorCode
from irload.plan.backends.llvm.kernels.columns import Columns, added, partial_counts
from irload.plan.backends.llvm.kernels.spans import Span, SpanCode, SpanKernel
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import COLUMN_VECTORS, REDUCED_BLOCK
from irload.plan.ir.steps import ReduceStep
from irload.record import record

LARGEST = 3.4028234663852886e38


def select_reduce(step: ReduceStep, selector: Selector) -> list[Launch]:
    """A reduction over any axes."""
    x, out = selector.stored(step.inputs[0]), selector.array(step.output)
    kept = [k for k in range(x.ndim) if k not in step.axes]
    strides = out.strides if len(kept) == out.ndim else tuple(out.strides[k] for k in kept)
    return [selector.launch(_kernel(step, x, kept, strides, selector.target.lanes), [out, x])]


def _kernel(step: ReduceStep, x: Array, kept: list[int], strides: tuple[int, ...], lanes: int) -> Kernel:
    outer = by_memory([Axis(x.shape[k], (s, x.strides[k])) for k, s in zip(kept, strides, strict=True)])
    inner = by_memory([Axis(x.shape[k], (x.strides[k],)) for k in step.axes])
    inner = [Axis(axis.size, (0, *axis.strides)) for axis in inner] or [Axis(1, (0, x.itemsize))]
    nearer = [axis for axis in outer if 0 < abs(axis.strides[1]) < abs(inner[-1].strides[1])]
    if not nearer:
        return RowReduce(lanes, tuple(outer), tuple(inner), step.kind, element_of(x))
    columns = min(nearer, key=lambda axis: abs(axis.strides[1]))
    rows = [axis for axis in outer if axis is not columns]
    return ColumnReduce(lanes, (*rows, columns), tuple(inner), step.kind, element_of(x))


def start(f: Function, kind: str) -> Vec:
    """The start of a reduction. That of a maximum is the lowest finite f32, the result for NaN and −∞ alone."""
    return f.number({"max": -LARGEST, "min": float("inf")}.get(kind, 0.0))


def combine(f: Function, kind: str, total: Vec, value: Vec) -> Vec:
    """The total with one more value. Maxima and minima ignore NaN."""
    if kind in ("sum", "mean"):
        return total + value
    taken = value.compare("ogt" if kind == "max" else "olt", total)
    return f.select(taken, value, total)


def _finish(kind: str, total: Vec, size: Vec) -> Vec:
    return total / size if kind == "mean" else total


@record()
class RowReduce(SpanKernel):
    """Reduces the inner axes for each position of the outer ones, with vectors along the last inner axis.

    Pointers: to, from. `element`: how x is stored.
    """

    kind: str
    element: str

    @property
    def own(self) -> tuple[int, ...]:
        return (float_word(size_of(self.inner)),)

    @property
    def cycles(self) -> float:
        return self.count * (30 + size_of(self.inner) / 8)

    @property
    def contiguous(self) -> Sequence[int]:
        return 0, SIZES[self.element]

    def span_code(self, f: Function, given: Arguments) -> SpanCode:
        (size,) = given.vectors(1)

        def code(span: Span, places: list[Pointer]) -> None:
            def term(at: list[Pointer], count: AnyInt | None, total: Vec) -> Vec:
                return combine(f, self.kind, total, read(f, at[1], 0, span.strides[1], count, self.element))

            total = span.fold(f, places, start(f, self.kind), term, lambda a, b: combine(f, self.kind, a, b))
            write(f, _finish(self.kind, total, size), places[0], 0, 0, 1)

        return code


@record()
class ColumnReduce(BlockKernel):
    """Reduces the inner axes for each position of the axes, with vectors along the last of these.

    Pointers: to, from. `element`: how x is stored. All sizes are read.
    """

    inner: tuple[Axis, ...]
    kind: str
    element: str

    times: ClassVar[int] = 1

    @property
    def code(self) -> ColumnReduce:
        return replace(self, axes=(self.row,), inner=any_sizes(self.inner))

    @property
    def own(self) -> tuple[int, ...]:
        return (float_word(size_of(self.inner)), *numbers(self.inner, any_sizes(self.inner)))

    @property
    def cycles(self) -> float:
        return size_of(self.axes) * size_of(self.inner) / 6

    @property
    def width(self) -> int:
        return self.lanes * COLUMN_VECTORS

    @property
    def block(self) -> int:
        return max(self.width, REDUCED_BLOCK // size_of(self.inner))

    @property
    def row(self) -> Axis:
        return Axis(ANY, strides_key(self.axes[-1], (SIZES[F32], SIZES[self.element])))

    def row_code(self, f: Function, given: Arguments) -> RowCode:
        (size,) = given.vectors(1)
        inner = given.loops(any_sizes(self.inner))

        def row(places: list[Pointer], strides: tuple[AnyInt, ...]) -> VectorCode:
            def vectors(at: AnyInt, count: AnyInt | None) -> None:
                begin = moved(places, [at * self.width * s for s in strides])
                columns = Columns(self.lanes, strides, partial_counts(f, COLUMN_VECTORS, count))

                def term(places: list[Pointer], totals: list[Vec]) -> list[Vec]:
                    values = columns.read(f, places, 1, self.element)
                    return [combine(f, self.kind, total, value) for total, value in zip(totals, values, strict=True)]

                starts = [start(f, self.kind)] * COLUMN_VECTORS
                totals = added(f, inner, begin, term, starts, lambda a, b: combine(f, self.kind, a, b))
                columns.write(f, [_finish(self.kind, total, size) for total in totals], begin, 0)

            return vectors

        return row
