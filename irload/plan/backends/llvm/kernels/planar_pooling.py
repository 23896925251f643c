"""Pooling of maps whose columns are neighbours in memory: vectors along columns, combined along one axis at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernels.loops import accumulate, each_part, offset
from irload.plan.backends.llvm.kernels.window_pooling import UNROLLED, WindowPooling
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.shuffles import unzipped
from irload.plan.backends.llvm.spans import counts
from irload.record import record

TOGETHER = 4
"""Vectors that are combined in one turn, so that none waits for what is combined before it."""

UNZIPPED = (1, 2, 4)
"""Strides of windows along a row by which vectors are loaded whole and unzipped; by others, element by element."""

LONGEST = 256 << 10
"""The bytes of a line at most, which the second level of the cache holds beside the data."""


@record()
class PlanarPooling(WindowPooling):
    """Vectors along columns, between which are 4 bytes in the data. A third pointer where `counts_taps`: `taps`.

    A unit is a row of windows of one map. All that its windows hold in a column is combined first, into a line of
    scratch that is padded with the neutral element; then the elements of the line in each window.
    """

    @property
    def count(self) -> int:
        return self.batch * self.channels * self.axes[0].count * self.axes[1].count

    @property
    def cycles(self) -> float:
        depth, height, width = self.axes
        data, windows = (-(-n // self.lanes) for n in (len(self._columns), width.count))
        load = width.stride if width.stride in UNZIPPED else self.lanes
        store = 1 if self.target[4] == 4 else self.lanes
        rows = data * (2 + 0.6 * depth.kernel * height.kernel)
        return self.count * (20 + rows + windows * (1 + store + 0.6 * width.kernel * load))

    @property
    def scratch(self) -> int:
        width = self.axes[2]
        windows = -(-width.count // self.lanes) * self.lanes
        elements = windows * width.stride + (width.kernel - 1) * width.dilation
        return -(-elements // self.lanes) * self.lanes * 4

    @property
    def counts_taps(self) -> bool:
        """True for means that are divided by different numbers."""
        return self.kind == "mean" and not self.full and not all(axis.whole for axis in self.axes)

    def taps(self) -> Array:
        """The taps along the row that lie in the data, at least 1: f32 for each window, filled up to whole vectors."""
        width = self.axes[2]
        found = np.ones(-(-width.count // self.lanes) * self.lanes, np.float32)
        found[: width.count] = [max(len(width.taps(k)), 1) for k in range(width.count)]
        return found

    @property
    def _columns(self) -> range:
        """The columns of the data that windows span."""
        width = self.axes[2]
        span = (width.count - 1) * width.stride + (width.kernel - 1) * width.dilation + 1
        return range(max(0, -width.begin), min(width.size, span - width.begin))

    def write(self, function: Function) -> None:
        f = function
        x, y = f.load_pointer(f["arguments"]), f.load_pointer(f["arguments"], 8)
        taps = f.load_pointer(f["arguments"], 16) if self.counts_taps else None
        depth, height, _ = self.axes
        padding = self.neutral(f)
        f.loop(0, self.scratch, f.target.bytes, lambda at, _: f.store(padding, f["scratch"], at))

        def unit(index: Value, _: list[Value]) -> None:
            plane, v = f.divmod(index, height.count)
            channel, u = f.divmod(plane, depth.count)
            place = f.divmod(channel, self.channels)
            planes, rows = depth.emit_taps(f, u), height.emit_taps(f, v)
            source = f.at(x, offset(f, self.source[:4], (*place, planes[2], rows[2])))
            self._write_line(f, source, planes[:2], rows[:2])
            counted = f.multiply(f.subtract(planes[1], planes[0]), f.subtract(rows[1], rows[0]))
            target = f.at(y, offset(f, self.target[:4], (*place, u, v)))
            self._write_windows(f, target, self._factors(f, counted, taps))

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_line(self, f: Function, source: Value, planes: tuple[Int, Int], rows: tuple[Int, Int]) -> None:
        """Combine the rows of data in the windows; `source`: where the first of their planes and rows starts."""
        depth, height, width = self.axes
        columns, size = self._columns, f.target.bytes
        data = f.at(source, columns.start * 4)
        line = f.at(f["scratch"], (columns.start + width.begin) * 4)

        def block(at: Int, parts: Sequence[int | None]) -> None:
            base, target = (f.at(pointer, f.multiply(at, 4)) for pointer in (data, line))

            def in_plane(plane: Int, totals: list[Value]) -> list[Value]:
                first = f.at(base, f.multiply(plane, depth.dilation * self.source[2]))

                def in_row(row: Int, totals: list[Value]) -> list[Value]:
                    place = f.at(first, f.multiply(row, height.dilation * self.source[3]))
                    found = [f.load(place, k * size, part) for k, part in enumerate(parts)]
                    return self._combined(f, totals, found)

                return accumulate(f, rows, in_row, totals)

            for k, total in enumerate(accumulate(f, planes, in_plane, [self.neutral(f)] * len(parts))):
                f.store(total, target, k * size, parts[k])

        _in_blocks(f, len(columns), block)

    def _write_windows(self, f: Function, target: Value, factors: Callable[[Int], Value] | None) -> None:
        """Combine the elements of the line in each window, and multiply by the factors of the vector's first window."""
        width = self.axes[2]
        pitch = width.stride * f.target.bytes

        def block(at: Int, parts: Sequence[int | None]) -> None:
            base = f.at(f["scratch"], f.multiply(at, width.stride * 4))

            def tap(k: Int, totals: list[Value]) -> list[Value]:
                place = f.at(base, f.multiply(k, width.dilation * 4))
                found = [self._picked(f, f.at(place, n * pitch)) for n in range(len(parts))]
                return self._combined(f, totals, found) if totals else found

            totals = tap(0, [])
            if width.kernel <= UNROLLED:
                for k in range(1, width.kernel):
                    totals = tap(k, totals)
            else:
                totals = f.loop(1, width.kernel, 1, tap, totals)
            for k, (total, part) in enumerate(zip(totals, parts, strict=True)):
                place = f.add(at, k * self.lanes)
                result = total if factors is None else f.arithmetic("fmul", total, factors(place))
                write(f, result, target, f.multiply(place, self.target[4]), self.target[4], part)

        _in_blocks(f, width.count, block)

    def _picked(self, f: Function, place: Value) -> Value:
        """The elements of the line that the same tap of neighbouring windows meets."""
        stride = self.axes[2].stride
        if stride in UNZIPPED:
            return unzipped(f, [f.load(place, k * f.target.bytes) for k in range(stride)])[0]
        return read(f, place, 0, stride * 4)

    def _combined(self, f: Function, totals: list[Value], found: list[Value]) -> list[Value]:
        return [self.combined(f, total, x) for total, x in zip(totals, found, strict=True)]

    def _factors(self, f: Function, counted: Int, taps: Value | None) -> Callable[[Int], Value] | None:
        """Gives one over the number of elements that each mean is of, for a vector; `counted`: those in a column."""
        if self.kind != "mean":
            return None
        if taps is None:
            return lambda _: f.number(1 / prod(axis.kernel for axis in self.axes))
        rows = f.splat(f.value("float", f"sitofp i64 {f.maximum(counted, 1)} to float"))

        def factors(at: Int) -> Value:
            count = f.arithmetic("fmul", rows, f.load(taps, f.multiply(at, 4)))
            return f.arithmetic("fdiv", f.number(1), count)

        return factors


def _in_blocks(f: Function, size: int, block: Callable[[Int, Sequence[int | None]], None]) -> None:
    """`block(first element, counts of its vectors)` for blocks of vectors of `size` elements."""
    each_part(f, size, TOGETHER * f.lanes, lambda at, count: block(at, counts(count, f.lanes)))
