"""Resampling along one axis: weighted sums of elements, whose offsets and weights are in tables.

Vectors are along a contiguous axis, channels or columns. If this is the resampled axis, its elements are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from irload.core.size import NotDefined, hint
from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import ANY, Axis, merged
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.blocks import LineKernel
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

TapAt = Callable[[Any, AnyInt, int | None], tuple[Vec, Vec]]
"""(index of a tap, index of an element, number of lanes or None for all) → the elements of the tap, the weights."""


@record()
class Resampling(LineKernel):
    """y[…,j,…,i] = Σ x[…,offsets[j,tap],…,i] · weights[j,tap]. Pointers: x, y, offsets (i64 bytes), weights.

    `outer`, `inner`: the other axes, with strides of x and y in bytes; vectors are along `inner`, which is i.
    `positions`: the size of y along j; `apart`: its stride. A unit is one j of one position of the outer axes.

    `gathers`: i is the resampled axis, y[…,i] = Σ x[…,offsets[tap,i]] · weights[tap,i], with one j. The tables are
    padded to whole vectors with valid offsets.

    All sizes are read at run time. Compiled in are `taps`, the strides along i, and `known`, the `tail_key` of its
    size.
    """

    lanes: int
    positions: int
    apart: int
    inner: Axis
    known: int
    taps: int
    gathers: bool = False

    others: ClassVar[int] = 2

    @property
    def code(self) -> Resampling:
        return replace(self, outer=(), positions=0, apart=ANY, inner=Axis(ANY, self.inner.strides))

    @property
    def parts(self) -> int:
        return self.positions

    @property
    def cycles(self) -> float:
        vectors = -(-self.inner.size // self.lanes)
        if self.gathers:
            return self.count * (10 + vectors * self.taps * 2 * self.lanes)
        slow = 1 if self.inner.strides == (4, 4) else self.lanes
        return self.count * (10 + vectors * (1 + self.taps) * slow)

    def write_part(self, f: Function, given: Resampling, starts: list[Pointer], part: AnyInt) -> None:
        (source, target, offsets, weights), row, size = starts, part * self.taps, given.inner.size
        if self.gathers:
            tap = self._columns(f, source, offsets, weights, size)
        else:
            tap = self._lines(f, source, offsets + row * 8, weights + row * 4)
        stride, line = self.inner.strides[1], target + part * given.apart
        for at, count in each_vector(f, size, self.known):
            write(f, self._sum(f, tap, at, count), line, at * stride, stride, count)

    @property
    def _holds(self) -> bool:
        """True if the pointers and the weights of all taps of a line are in registers."""
        return not self.gathers and self.taps <= HELD_TAPS

    def _sum(self, f: Function, tap: TapAt, at: AnyInt, count: int | None) -> Vec:
        """The weighted sum of all taps."""
        totals, first = [f.zero()], 0
        if self._holds or self.gathers:
            element, weight = tap(0, at, count)
            totals, first = [element * weight], 1
        for k in range(first, self.taps) if self._holds else f.range(first, self.taps, 1, totals):
            element, weight = tap(k, at, count)
            totals[0] = f.fma(element, weight, totals[0])
        return totals[0]

    def _lines(self, f: Function, source: Pointer, offsets: Pointer, weights: Pointer) -> TapAt:
        """The taps of lines of x, whose offsets and weights are in a row of the tables."""

        def load(k: AnyInt) -> tuple[Pointer, Vec]:
            return source + f.load_int(offsets, k * 8), f.broadcast(weights, k * 4)

        def tap(k: Any, at: AnyInt, count: int | None) -> tuple[Vec, Vec]:
            pointer, weight = held[k] if held else load(k)
            return read(f, pointer, at * stride, stride, count), weight

        stride, held = self.inner.strides[0], [load(k) for k in range(self.taps)] if self._holds else []
        return tap

    def _columns(self, f: Function, source: Pointer, offsets: Pointer, weights: Pointer, size: AnyInt) -> TapAt:
        """The taps of elements, whose offsets and weights are in columns of the tables."""
        row = (size + (self.lanes - 1)) // self.lanes * self.lanes

        def tap(k: Any, at: AnyInt, count: int | None) -> tuple[Vec, Vec]:
            column = k * row + at
            element = f.gather(source, f.load(offsets, column * 8, element="i64"), unit="i8")
            return element, f.load(weights, column * 4)

        return tap


@record(eq=False)
class TapTables:
    """The tables of a resampling, as functions of the sizes of the axis if these are symbols. All have `taps` columns.

    `lanes`: the lanes of a vector for a kernel that gathers, else 0.
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
        taps = self.of(*sizes)
        if taps.index.shape[1] != self.taps:
            raise NotDefined
        return taps

    def _padded(self, table: Array) -> Array:
        if not self.lanes:
            return table
        return np.pad(table.T, ((0, 0), (0, -len(table) % self.lanes)))


def select_resample(step: ResampleStep, selector: Selector) -> list[Launch]:
    """The kernel of a resampling."""
    x, y = selector.array(step.inputs[0]), selector.array(step.output)
    source, lanes = step.taps, selector.target.lanes
    of, sizes = (source.of, (source.size, source.out)) if isinstance(source, SizedTaps) else (lambda: source, ())
    taps = of(*map(hint, sizes)).index.shape[1]
    count, stride = y.shape[step.axis], y.strides[step.axis]
    axes = [Axis(n, (x.strides[k], y.strides[k])) for k, n in enumerate(y.shape) if k != step.axis]
    axes = merged(sorted(axes, key=lambda axis: -abs(axis.strides[1])))
    innermost = next((k for k, axis in enumerate(axes) if axis.strides == (4, 4)), None)
    if innermost is None and axes and stride != 4:
        innermost = len(axes) - 1
    gathers = innermost is None
    inner = Axis(count, (0, stride)) if innermost is None else axes.pop(innermost)
    line = (1, 0, inner) if gathers else (count, stride, inner)
    kernel = Resampling(tuple(axes), lanes, *line, tail_key(inner.size, lanes), taps, gathers)
    tables = TapTables(of, taps, lanes if gathers else 0)
    offsets = computed(tables.offsets, x.strides[step.axis], *sizes)
    return [selector.launch(kernel, [x, y, offsets, computed(tables.weights, *sizes)])]
