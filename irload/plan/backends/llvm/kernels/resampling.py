"""Resampling along one axis: sums of weighted elements, whose places and weights stand in tables.

Vectors run along an axis whose elements are neighbours in memory, channels or columns. Where that is the resampled axis
itself, its elements are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import accumulate, each_vector
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.pack import aligned_f32
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import Resample
from irload.record import record

HELD = 4
"""Taps whose places and weights are held in registers; more of them are a loop."""


@record()
class Resampling(Kernel):
    """y[…,j,…,i] = Σ x[…,places[j,tap],…,i] · weights[j,tap]. Pointers: x, places (i64 bytes), weights, y.

    `outer` are the sizes of the other axes. Strides count bytes: of x along outer axes and i, of y along outer axes, j
    and i. A unit is one j of one position of the outer axes.
    """

    lanes: int
    outer: tuple[int, ...]
    positions: int
    size: int
    taps: int
    x: tuple[int, ...]
    y: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.outer) * self.positions

    @property
    def cycles(self) -> float:
        slow = 1 if self.x[-1] == self.y[-1] == 4 else self.lanes
        return self.count * (10 + -(-self.size // self.lanes) * (1 + self.taps) * slow)

    def write(self, function: Function) -> None:
        f = function
        x, places, weights, y = (f.load_pointer(f["arguments"], 8 * k) for k in range(4))

        def unit(index: Value, _: list[Value]) -> None:
            line, j = f.divmod(index, self.positions)
            source, target = _lines(f, line, self.outer, (x, y), (self.x, self.y))
            target = f.at(target, f.multiply(j, self.y[-2]))
            own_places, own_weights = (f.at(p, f.multiply(j, self.taps * n)) for p, n in ((places, 8), (weights, 4)))

            def tap(k: Int) -> tuple[Value, Value]:
                place = f.at(source, f.load_int(own_places, f.multiply(k, 8)))
                return place, f.broadcast(own_weights, f.multiply(k, 4))

            held = [tap(k) for k in range(self.taps)] if self.taps <= HELD else []

            def vector(at: Int, count: int | None) -> None:
                place = f.multiply(at, self.x[-1])

                def add(k: Int, totals: list[Value]) -> list[Value]:
                    pointer, weight = held[k] if isinstance(k, int) else tap(k)
                    return [f.fma(read(f, pointer, place, self.x[-1], count), weight, totals[0])]

                if held:
                    pointer, weight = held[0]
                    totals = [f.arithmetic("fmul", read(f, pointer, place, self.x[-1], count), weight)]
                    for k in range(1, self.taps):
                        totals = add(k, totals)
                else:
                    totals = accumulate(f, (0, self.taps), add, [f.zero()])
                write(f, totals[0], target, f.multiply(at, self.y[-1]), self.y[-1], count)

            each_vector(f, self.size, vector)

        f.loop(f["begin"], f["end"], 1, unit)


@record()
class GatheredResampling(Kernel):
    """y[…,j] = Σ x[…,places[tap,j]] · weights[tap,j]. Pointers and sizes as those of Resampling, without i.

    The tables are [taps, positions], the latter filled up to whole vectors with places that may be read. A unit is a
    position of the outer axes.
    """

    lanes: int
    outer: tuple[int, ...]
    positions: int
    taps: int
    x: tuple[int, ...]
    y: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.outer)

    @property
    def cycles(self) -> float:
        return self.count * (10 + -(-self.positions // self.lanes) * self.taps * 2 * self.lanes)

    def write(self, function: Function) -> None:
        f = function
        x, places, weights, y = (f.load_pointer(f["arguments"], 8 * k) for k in range(4))
        row = -(-self.positions // self.lanes) * self.lanes

        def unit(line: Value, _: list[Value]) -> None:
            source, target = _lines(f, line, self.outer, (x, y), (self.x, self.y))

            def vector(at: Int, count: int | None) -> None:
                def add(k: Int, totals: list[Value]) -> list[Value]:
                    column = f.add(f.multiply(k, row), at)
                    found = _gather(f, source, f.at(places, f.multiply(column, 8)))
                    weight = f.load(weights, f.multiply(column, 4))
                    product = f.fma(found, weight, totals[0]) if totals else f.arithmetic("fmul", found, weight)
                    return [product]

                (total,) = accumulate(f, (1, self.taps), add, add(0, []))
                write(f, total, target, f.multiply(at, self.y[-1]), self.y[-1], count)

            each_vector(f, self.positions, vector)

        f.loop(f["begin"], f["end"], 1, unit)


def _lines(
    f: Function, line: Int, sizes: Sequence[int], pointers: Sequence[Value], strides: Sequence[Sequence[int]]
) -> list[Value]:
    """Where a line of the outer axes begins in each tensor."""
    found = list(pointers)
    rest: Int = line
    for k in reversed(range(len(sizes))):
        rest, index = f.divmod(rest, sizes[k]) if k else (0, rest)
        found = [f.at(p, f.multiply(index, s[k])) for p, s in zip(found, strides, strict=True)]
    return found


def _gather(f: Function, source: Value, places: Value) -> Value:
    """The elements that lie so many bytes from `source`."""
    kind, lanes = f"<{f.lanes} x i64>", f"<{f.lanes} x ptr>"
    offsets = f.value(kind, f"load {kind}, ptr {places}, align 8")
    pointers = f.value(lanes, f"getelementptr i8, ptr {source}, {kind} {offsets}")
    name = f"@llvm.masked.gather.v{f.lanes}f32.v{f.lanes}p0"
    all_lanes = f"{f.booleans} splat (i1 true), {f.vector} zeroinitializer"
    return f.value(f.vector, f"call {f.vector} {name}({lanes} {pointers}, i32 4, {all_lanes})")


def select_resample(step: Resample, selector: Selector) -> list[Launch]:
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
    places, weights = step.index * x.strides[step.axis], step.weight
    kernel: Kernel
    if inner is not None:
        strides = (*starts[0], inner.strides[0]), (*starts[1], stride, inner.strides[1])
        kernel = Resampling(lanes, outer, count, inner.size, taps, *strides)
    else:
        kernel = GatheredResampling(lanes, outer, count, taps, starts[0], (*starts[1], stride))
        filling = ((0, 0), (0, -count % lanes))
        places, weights = np.pad(places.T, filling), np.pad(weights.T, filling)
    tables: list[Array] = [np.ascontiguousarray(places, np.int64), aligned_f32(weights.shape)]
    tables[1][...] = weights
    return [selector.launch(kernel, [x, *tables, y])]
