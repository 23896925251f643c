"""Resampling along one axis: weighted sums of elements, whose offsets and weights are in tables.

Vectors follow a contiguous axis, channels or columns. If that is the resampled axis itself, its elements are gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import accumulate, digits, indices, offset
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import HELD_TAPS
from irload.plan.backends.llvm.weight_memory import aligned_f32
from irload.plan.ir.steps import ResampleStep
from irload.record import record

VectorAt = Callable[[AnyInt, int | None], Vec]
"""Gives the vector at an element, or some lanes of it."""


@record()
class Resampling(Kernel):
    """y[…,j,…,i] = Σ x[…,offsets[j,tap],…,i] · weights[j,tap]. Pointers: x, offsets (i64 bytes), weights, y.

    Vectors follow i, an axis of `size` elements. `outer` are the sizes of the other axes. Strides count bytes: of x
    along outer axes and i, of y along outer axes, j and i. A unit is one j of one position of the outer axes.

    `gathers`: i is the resampled axis, y[…,i] = Σ x[…,offsets[tap,i]] · weights[tap,i], with one j. The tables are
    padded to whole vectors with offsets that may be read.

    All sizes are read at run time. Compiled in are `taps`, the strides along i, and the tail of `size`.
    """

    lanes: int
    outer: tuple[int, ...]
    positions: int
    size: int
    taps: int
    x: tuple[int, ...]
    y: tuple[int, ...]
    gathers: bool = False

    @property
    def code(self) -> Resampling:
        size = self.size % self.lanes + (self.lanes if self.size >= self.lanes else 0)
        outer, unknown = (0,) * len(self.outer), (0,) * len(self.x[:-1])
        x, y = (*unknown, self.x[-1]), (*unknown, 0, self.y[-1])
        return replace(self, outer=outer, positions=0, size=size, x=x, y=y)

    @property
    def numbers(self) -> tuple[int, ...]:
        strides = (*self.x[:-1], *self.y[:-1])
        return (self.positions, self.size, *self.outer, *strides)

    @property
    def count(self) -> int:
        return prod(self.outer) * self.positions

    @property
    def cycles(self) -> float:
        vectors = -(-self.size // self.lanes)
        if self.gathers:
            return self.count * (10 + vectors * self.taps * 2 * self.lanes)
        slow = 1 if self.x[-1] == self.y[-1] == 4 else self.lanes
        return self.count * (10 + vectors * (1 + self.taps) * slow)

    def write(self, function: Function) -> None:
        f, axes = function, len(self.outer)
        x, offsets, weights, y = (f.load_pointer(f["arguments"], 8 * k) for k in range(4))
        positions, size, *rest = (f.load_int(f["arguments"], 8 * (4 + k)) for k in range(3 + 3 * axes))
        outer, of_x, of_y = rest[:axes], rest[axes : 2 * axes], rest[2 * axes :]

        def unit(index: Int, _: list[Any]) -> None:
            line, j = digits(f, index, [positions])
            at = indices(f, line, outer)
            source, target = x + offset(f, of_x, at), y + offset(f, of_y, [*at, *j])
            if self.gathers:
                vector = self._gathered(f, source, offsets, weights, size)
            else:
                row = j[0] * self.taps
                vector = self._weighted(f, source, offsets + row * 8, weights + row * 4)

            def write_vector(at: AnyInt, count: int | None) -> None:
                write(f, vector(at, count), target, at * self.y[-1], self.y[-1], count)

            whole, tail = size // self.lanes * self.lanes, self.size % self.lanes
            if self.size >= self.lanes:
                f.loop(0, whole, self.lanes, lambda at, _: write_vector(at, None))
            if tail:
                write_vector(whole, tail)

        f.loop(f["begin"], f["end"], 1, unit)

    def _weighted(self, f: Function, source: Pointer, offsets: Pointer, weights: Pointer) -> VectorAt:
        """The weighted sum of lines of x, whose offsets and weights are in a row of the tables."""

        def tap(k: AnyInt) -> tuple[Pointer, Vec]:
            return source + f.load_int(offsets, k * 8), f.broadcast(weights, k * 4)

        held = [tap(k) for k in range(self.taps)] if self.taps <= HELD_TAPS else []

        def vector(at: AnyInt, count: int | None) -> Vec:
            def element(pointer: Pointer) -> Vec:
                return read(f, pointer, at * self.x[-1], self.x[-1], count)

            def add(k: AnyInt, totals: list[Vec]) -> list[Vec]:
                pointer, weight = tap(k)
                return [f.fma(element(pointer), weight, totals[0])]

            if not held:
                return accumulate(f, (0, self.taps), add, [f.zero()])[0]
            total = element(held[0][0]) * held[0][1]
            for pointer, weight in held[1:]:
                total = f.fma(element(pointer), weight, total)
            return total

        return vector

    def _gathered(self, f: Function, source: Pointer, offsets: Pointer, weights: Pointer, size: Int) -> VectorAt:
        """The weighted sum of elements, whose offsets and weights are in columns of the tables."""
        row = (size + (self.lanes - 1)) // self.lanes * self.lanes

        def vector(at: AnyInt, count: int | None) -> Vec:
            def add(k: AnyInt, totals: list[Vec]) -> list[Vec]:
                column = k * row + at
                element = f.gather(source, f.load(offsets, column * 8, element="i64"), unit="i8")
                weight = f.load(weights, column * 4)
                return [f.fma(element, weight, totals[0]) if totals else element * weight]

            return accumulate(f, (1, self.taps), add, add(0, []))[0]

        return vector


def select_resample(step: ResampleStep, selector: Selector) -> list[Launch]:
    """The kernel of a resampling."""
    x, y = selector.array(step.inputs[0]), selector.array(step.output)
    lanes, taps = selector.target.lanes, step.index.shape[1]
    count, stride = y.shape[step.axis], y.strides[step.axis]
    axes = [Axis(n, (x.strides[k], y.strides[k])) for k, n in enumerate(y.shape) if k != step.axis]
    axes = merged(sorted(axes, key=lambda axis: -abs(axis.strides[1])))
    best = next((k for k, axis in enumerate(axes) if axis.strides == (4, 4)), None)
    if best is None and axes and stride != 4:
        best = len(axes) - 1
    inner = axes.pop(best) if best is not None else None
    outer = tuple(axis.size for axis in axes)
    starts = [tuple(axis.strides[k] for axis in axes) for k in range(2)]
    offsets, weights = step.index * x.strides[step.axis], step.weight
    if inner is not None:
        strides = (*starts[0], inner.strides[0]), (*starts[1], stride, inner.strides[1])
        kernel = Resampling(lanes, outer, count, inner.size, taps, *strides)
    else:
        strides = (*starts[0], 0), (*starts[1], 0, stride)
        kernel = Resampling(lanes, outer, 1, count, taps, *strides, gathers=True)
        filling = ((0, 0), (0, -count % lanes))
        offsets, weights = np.pad(offsets.T, filling), np.pad(weights.T, filling)
    tables: list[Array] = [np.ascontiguousarray(offsets, np.int64), aligned_f32(weights.shape)]
    tables[1][...] = weights
    return [selector.launch(kernel, [x, *tables, y])]
