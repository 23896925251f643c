"""Pooling: vectors over channels, several columns of the output a turn; a loop over the taps that lie in the data."""

from __future__ import annotations

from math import prod

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.kernels.loops import accumulate, offset, repeat
from irload.plan.backends.llvm.kernels.window_pooling import UNROLLED, WindowPooling
from irload.plan.backends.llvm.operands import read, write
from irload.record import record

LONG = 16
"""Taps along a row that are summed up for themselves, so that large means lose no accuracy."""


@record()
class Pooling(WindowPooling):
    """Vectors of channels. A unit is a row of windows of a block of them.

    `block`: vectors of channels. `columns`: windows that are computed together.
    """

    block: int
    columns: int
    elements: tuple[str, str]
    """How source and target are stored."""

    @property
    def _blocks(self) -> int:
        return -(-self.channels // (self.block * self.lanes))

    @property
    def count(self) -> int:
        return self.batch * self.axes[0].count * self.axes[1].count * self._blocks

    @property
    def cycles(self) -> float:
        windows = self.batch * prod(axis.count for axis in self.axes)
        dense = all(t[1] == SIZES[e] for t, e in zip((self.source, self.target), self.elements, strict=True))
        reads = self._blocks * self.block if dense else self.channels
        return windows * reads * (2 + 0.6 * prod(axis.kernel for axis in self.axes))

    def write(self, function: Function) -> None:
        f = function
        x, y = f.load_pointer(f["arguments"]), f.load_pointer(f["arguments"], 8)
        depth, height, _ = self.axes
        last = self.channels - (self._blocks - 1) * self.block * self.lanes
        names = {"block": self.block * self.lanes, "rest": last}
        if last == self.block * self.lanes or self._blocks == 1:
            names = {"block": last}
        for name, channels in names.items():
            self._write_row(f, name, channels)

        def unit(index: Value, carried: list[Value]) -> None:
            row, block = f.divmod(index, self._blocks)
            plane, v = f.divmod(row, height.count)
            sample, u = f.divmod(plane, depth.count)
            at = f.multiply(block, self.block * self.lanes)
            source = f.at(x, offset(f, self.source[:2], (sample, at)))
            target = f.at(y, offset(f, self.target[:4], (sample, at, u, v)))
            calls = {name: (lambda name=name: f.call(name, [source, target, u, v])) for name in names}
            if len(calls) == 1:
                calls["block"]()
            else:
                f.when(f.compare("eq", block, self._blocks - 1), calls["rest"], calls["block"])

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_row(self, kernel: Function, name: str, channels: int) -> None:
        """A row of windows for so many channels: parameters are source and target of the sample, and the row."""
        f = kernel.module.function(name, ["ptr source", "ptr target", "i64 depth", "i64 height"])
        depth, height, width = self.axes
        planes, rows = depth.emit_taps(f, f["depth"]), height.emit_taps(f, f["height"])
        counted = f.multiply(f.subtract(planes[1], planes[0]), f.subtract(rows[1], rows[0]))
        base = f.at(f["source"], offset(f, self.source[2:4], (planes[2], rows[2])))
        row = _Row(self, f, channels, planes[:2], rows[:2], counted, base)
        inner = width.interior
        row.edge(0, inner.start)
        whole = inner.start + len(inner) // self.columns * self.columns
        repeat(f, inner.start, whole, self.columns, lambda at: row.windows(at, self.columns))
        repeat(f, whole, inner.stop, 1, lambda at: row.windows(at, 1))
        row.edge(inner.stop, width.count)


@record()
class _Row:
    """Writes the windows of one row into a function."""

    kernel: Pooling
    f: Function
    channels: int
    planes: tuple[Int, Int]
    rows: tuple[Int, Int]
    counted: Int
    base: Value

    def edge(self, start: int, stop: int) -> None:
        """Windows that reach beyond the row, one by one."""

        def window(at: Int) -> None:
            first, last, _ = self.kernel.axes[2].emit_taps(self.f, at)
            self.windows(at, 1, (first, last))

        repeat(self.f, start, stop, 1, window)

    def windows(self, at: Int, count: int, taps: tuple[Int, Int] | None = None) -> None:
        """`count` windows from a position on, by the taps first…last of each row, by default all."""
        f, kernel, width = self.f, self.kernel, self.kernel.axes[2]
        mean = kernel.kind == "mean"
        column, channel = kernel.source[4], kernel.source[1]
        base = f.at(self.base, f.multiply(f.subtract(f.multiply(at, width.stride), width.begin), column))
        vectors = self._vectors()
        initial = [kernel.neutral(f)] * (count * len(vectors))

        def taken(row: Value, tap: Int, totals: list[Value]) -> list[Value]:
            place = f.at(row, f.multiply(tap, width.dilation * column))
            found: list[Value] = []
            for k in range(count):
                for v, (first, lanes) in enumerate(vectors):
                    x = read(f, place, k * width.stride * column + first * channel, channel, lanes, kernel.elements[0])
                    found.append(kernel.combined(f, totals[k * len(vectors) + v], x))
            return found

        def in_row(row: Value, totals: list[Value]) -> list[Value]:
            if taps is None and width.kernel <= UNROLLED:
                for tap in range(width.kernel):
                    totals = taken(row, tap, totals)
                return totals
            apart = mean and width.kernel >= LONG
            start = initial if apart else totals
            sums = accumulate(f, taps or (0, width.kernel), lambda tap, sums: taken(row, tap, sums), start)
            return [f.arithmetic("fadd", a, b) for a, b in zip(totals, sums, strict=True)] if apart else sums

        def in_plane(plane: Int, totals: list[Value]) -> list[Value]:
            place = f.at(base, f.multiply(plane, kernel.axes[0].dilation * kernel.source[2]))
            pitch = kernel.axes[1].dilation * kernel.source[3]
            return accumulate(f, self.rows, lambda k, t: in_row(f.at(place, f.multiply(k, pitch)), t), totals)

        totals = accumulate(f, self.planes, in_plane, initial)
        scale = self._scale(taps) if mean else None
        target = f.at(f["target"], f.multiply(at, kernel.target[4]))
        for k, total in enumerate(totals):
            window, (first, lanes) = k // len(vectors), vectors[k % len(vectors)]
            place = window * kernel.target[4] + first * kernel.target[1]
            result = total if scale is None else f.arithmetic("fmul", total, scale)
            write(f, result, target, place, kernel.target[1], lanes, kernel.elements[1])

    def _scale(self, taps: tuple[Int, Int] | None) -> Value:
        """One over the number of elements that a mean is of."""
        f, kernel = self.f, self.kernel
        count: Int = prod(a.kernel for a in kernel.axes)
        if not kernel.full:
            first, last = taps or (0, kernel.axes[2].kernel)
            count = f.maximum(f.multiply(self.counted, f.subtract(last, first)), 1)
        if isinstance(count, int):
            return f.number(1 / count)
        divisor = f.value("float", f"sitofp i64 {count} to float")
        return f.splat(f.value("float", f"fdiv float 1.0, {divisor}"))

    def _vectors(self) -> list[tuple[int, int | None]]:
        """The offset of each vector of channels, and how many it has if they are fewer than lanes."""
        lanes = self.kernel.lanes
        return [
            (at, self.channels - at if self.channels - at < lanes else None) for at in range(0, self.channels, lanes)
        ]
