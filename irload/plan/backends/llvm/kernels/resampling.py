"""Resampling along one axis: weighted sums of elements, whose offsets and weights are in tables.

Vectors follow a contiguous axis, channels or columns. If that is the resampled axis itself, its elements are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from irload.core.size import NotDefined, hint
from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments, moved, walk_lines
from irload.plan.backends.llvm.axes import Axis, merged, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import each_vector, tail_key
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.sized_arrays import computed
from irload.plan.backends.llvm.tuning import HELD_TAPS
from irload.plan.backends.llvm.weight_memory import aligned_copy
from irload.plan.ir.steps import ResampleStep
from irload.plan.ir.steps.rows import SizedTaps
from irload.record import record

if TYPE_CHECKING:
    from irload.ops.image.taps import Taps

VectorAt = Callable[[AnyInt, int | None], Vec]
"""Gives the vector at an element, or some lanes of it."""


@record()
class Resampling(Kernel):
    """y[…,j,…,i] = Σ x[…,offsets[j,tap],…,i] · weights[j,tap]. Pointers: x, offsets (i64 bytes), weights, y.

    `outer`, `inner`: the other axes, with bytes between neighbours of x and y; vectors follow `inner`, which is i.
    `positions`: of y along j, `apart` bytes from each other. A unit is one j of one position of the outer axes.

    `gathers`: i is the resampled axis, y[…,i] = Σ x[…,offsets[tap,i]] · weights[tap,i], with one j. The tables are
    padded to whole vectors with offsets that may be read.

    All sizes are read at run time. Compiled in are `taps`, the strides along i, and the tail of its size.
    """

    lanes: int
    outer: tuple[Axis, ...]
    positions: int
    apart: int
    inner: Axis
    taps: int
    gathers: bool = False

    @property
    def code(self) -> Resampling:
        inner = Axis(tail_key(self.inner.size, self.lanes), self.inner.strides)
        return replace(self, outer=(), positions=0, apart=0, inner=inner)

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.positions, self.apart, self.inner.size, *table(self.outer, 2))

    @property
    def count(self) -> int:
        return size_of(self.outer) * self.positions

    @property
    def cycles(self) -> float:
        vectors = -(-self.inner.size // self.lanes)
        if self.gathers:
            return self.count * (10 + vectors * self.taps * 2 * self.lanes)
        slow = 1 if self.inner.strides == (4, 4) else self.lanes
        return self.count * (10 + vectors * (1 + self.taps) * slow)

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        (x, offsets, weights, y), (positions, apart, size) = given.pointers(4), given.integers(3)
        for starts, j in walk_lines(f, positions, given.table(2), [x, y]):
            source, target = moved(starts, [0, j * apart])
            if self.gathers:
                vector = self._gathered(f, source, offsets, weights, size)
            else:
                row = j * self.taps
                vector = self._weighted(f, source, offsets + row * 8, weights + row * 4)
            stride = self.inner.strides[1]
            for at, count in each_vector(f, size, self.inner.size):
                write(f, vector(at, count), target, at * stride, stride, count)

    def _weighted(self, f: Function, source: Pointer, offsets: Pointer, weights: Pointer) -> VectorAt:
        """The weighted sum of lines of x, whose offsets and weights are in a row of the tables."""

        def tap(k: AnyInt) -> tuple[Pointer, Vec]:
            return source + f.load_int(offsets, k * 8), f.broadcast(weights, k * 4)

        stride = self.inner.strides[0]
        held = [tap(k) for k in range(self.taps)] if self.taps <= HELD_TAPS else []

        def vector(at: AnyInt, count: int | None) -> Vec:
            def element(pointer: Pointer) -> Vec:
                return read(f, pointer, at * stride, stride, count)

            if held:
                total = element(held[0][0]) * held[0][1]
                for pointer, weight in held[1:]:
                    total = f.fma(element(pointer), weight, total)
                return total
            totals = [f.zero()]
            for k in f.range(0, self.taps, 1, totals):
                pointer, weight = tap(k)
                totals[0] = f.fma(element(pointer), weight, totals[0])
            return totals[0]

        return vector

    def _gathered(self, f: Function, source: Pointer, offsets: Pointer, weights: Pointer, size: AnyInt) -> VectorAt:
        """The weighted sum of elements, whose offsets and weights are in columns of the tables."""
        row = (size + (self.lanes - 1)) // self.lanes * self.lanes

        def vector(at: AnyInt, count: int | None) -> Vec:
            def tap(k: AnyInt) -> tuple[Vec, Vec]:
                column = k * row + at
                element = f.gather(source, f.load(offsets, column * 8, element="i64"), unit="i8")
                return element, f.load(weights, column * 4)

            element, weight = tap(0)
            totals = [element * weight]
            for k in f.range(1, self.taps, 1, totals):
                element, weight = tap(k)
                totals[0] = f.fma(element, weight, totals[0])
            return totals[0]

        return vector


@record(eq=False)
class Tables:
    """The tables of a resampling as functions of the sizes of the axis, if they are not fixed. All have `taps` columns.

    `lanes`: of the vectors of a kernel that gathers, else 0.
    """

    of: Callable[..., Taps]
    taps: int
    lanes: int

    def offsets(self, stride: int, *sizes: int) -> Array:
        """The bytes to each tap of each position. Raises NotDefined for another number of taps."""
        return np.ascontiguousarray(self._padded(self._taps(sizes).index * stride), np.int64)

    def weights(self, *sizes: int) -> Array:
        """The weight of each tap of each position. Raises NotDefined for another number of taps."""
        return aligned_copy(self._padded(self._taps(sizes).weight))

    def _taps(self, sizes: Sequence[int]) -> Taps:
        found = self.of(*sizes)
        if found.index.shape[1] != self.taps:
            raise NotDefined
        return found

    def _padded(self, table: Array) -> Array:
        if not self.lanes:
            return table
        return np.pad(table.T, ((0, 0), (0, -len(table) % self.lanes)))


def select_resample(step: ResampleStep, selector: Selector) -> list[Launch]:
    """The kernel of a resampling."""
    x, y = selector.array(step.inputs[0]), selector.array(step.output)
    given, lanes = step.taps, selector.target.lanes
    of, sizes = (given.of, (given.size, given.out)) if isinstance(given, SizedTaps) else (lambda: given, ())
    taps = of(*map(hint, sizes)).index.shape[1]
    count, stride = y.shape[step.axis], y.strides[step.axis]
    axes = [Axis(n, (x.strides[k], y.strides[k])) for k, n in enumerate(y.shape) if k != step.axis]
    axes = merged(sorted(axes, key=lambda axis: -abs(axis.strides[1])))
    best = next((k for k, axis in enumerate(axes) if axis.strides == (4, 4)), None)
    if best is None and axes and stride != 4:
        best = len(axes) - 1
    if best is not None:
        inner = axes.pop(best)
        kernel = Resampling(lanes, tuple(axes), count, stride, inner, taps)
    else:
        kernel = Resampling(lanes, tuple(axes), 1, 0, Axis(count, (0, stride)), taps, gathers=True)
    tables = Tables(of, taps, lanes if kernel.gathers else 0)
    offsets = computed(tables.offsets, x.strides[step.axis], *sizes)
    return [selector.launch(kernel, [x, offsets, computed(tables.weights, *sizes), y])]
