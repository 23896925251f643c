"""The code that computes neighbouring windows of a row for a range of the channels: taps, then results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from irload.plan.backends.llvm import tuning
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Pointer, Vec
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.kernels.windows import clipped_taps, readers
from irload.plan.backends.llvm.operands import read, write

if TYPE_CHECKING:
    from irload.plan.backends.llvm.kernels.sliding_windows import SlidingWindows


class WindowBlock:
    """The function that computes neighbouring windows for a range of the channels.

    `windows`: the number of windows, whose taps along the columns are unrolled; None for one window, whose taps are a
    loop. `tail`: the channels of the last vectors, 0 for whole vectors. `at_end`: some elements or windows of the block
    may be outside the map.
    """

    def __init__(self, kernel: SlidingWindows, windows: int | None, tail: int, *, at_end: bool = False) -> None:
        self._kernel = kernel
        self._unrolled = windows is not None
        self._windows = windows or 1
        self._tail = tail
        self._at_end = at_end

    def call(self, f: Function, arguments: Mapping[str, AnyInt | Pointer]) -> None:
        """Call the function, which is written when it is first needed."""
        name = ("ends" if self._at_end else "windows") + ("_tail" if self._tail else "")
        f.call(name, arguments, self._write)

    def _write(self, f: Function) -> None:
        kernel = self._kernel
        tensors = [f[f"tensor{k}"] for k in range(len(kernel.strides))]

        def channels(channel: AnyInt, count: int) -> None:
            starts = [p + channel * s[1] for p, s in zip(tensors, kernel.strides, strict=True)]
            table = f["table"] + channel * (4 * kernel.taps * kernel.how.factors) if kernel.how.factors else None
            self._store(f, self._totals(f, starts[0], table, count), starts, count)

        if self._tail:
            channels(f["channel"], self._tail)
        else:
            step = kernel.vectors * kernel.lanes
            for at in f.range(f["channel"], f["channels"], step):
                channels(at, step)

    def _totals(self, f: Function, x: Pointer, table: Pointer | None, count: int) -> list[Vec]:
        """The totals of `count` channels: for each window, the vectors of its channels."""
        kernel, windows = self._kernel, self._windows
        _, height, width = kernel.axes
        vectors = -(-count // kernel.lanes)
        planes, rows = kernel.bounds(f)
        how, together = kernel.how, max(kernel.how.factors, 1)
        neutral = [how.neutral(f)] * (windows * vectors)
        channel, column, nbytes = kernel.strides[0][1], kernel.column(f, 0), f.target.bytes

        def elements(source: Pointer, at: AnyInt, v: int) -> list[Vec]:
            lanes = min(count - v * kernel.lanes, kernel.lanes)
            loaded = read(f, source, at + v * kernel.lanes * channel, channel, lanes, kernel.elements[0])
            return how.loaded(loaded)

        def factors_of(table: Pointer | None, tap: AnyInt, v: int) -> Sequence[Vec | None]:
            if table is None:
                return [None] * together
            first = (tap + v * kernel.taps) * together
            return [f.load(table, (first + k) * nbytes, align=nbytes) for k in range(together)]

        def combined(total: Vec, parts: Sequence[Vec], factors: Sequence[Vec | None]) -> Vec:
            for part, factor in zip(parts, factors, strict=True):
                total = how.combined(f, total, part, factor)
            return total

        def part(begin: AnyInt, taps: int, source: Pointer, table: Pointer | None, totals: list[Vec]) -> None:
            first = begin * width.dilation
            source, table = source + first * column, moved(table, begin, 1)
            loaded: dict[tuple[int, int], Sequence[Vec | None]] = {}
            for at, pairs in readers(replace(width, kernel=taps), self._windows).items():
                for tap, v in ((tap, v) for _, tap in pairs for v in range(vectors)):
                    if (tap, v) not in loaded:
                        loaded[tap, v] = factors_of(table, tap, v)
                with f.when(self._reads(f, at, first), totals) if self._at_end else nullcontext():
                    for v in range(vectors):
                        parts = elements(source, column * at, v)
                        for window, tap in pairs:
                            k = window * vectors + v
                            totals[k] = combined(totals[k], parts, loaded[tap, v])

        def unrolled(source: Pointer, table: Pointer | None, totals: list[Vec]) -> list[Vec]:
            step = -(-width.kernel // -(-width.kernel // tuning.WIDEST))
            whole = width.kernel // step * step
            for begin in repeat(f, 0, whole, step, totals):
                part(begin, step, source, table, totals)
            if whole < width.kernel:
                part(whole, width.kernel - whole, source, table, totals)
            return totals

        def looped(source: Pointer, table: Pointer | None, totals: list[Vec]) -> list[Vec]:
            for tap in f.range(f["tap"], f["taps"], 1, totals):
                at = tap * width.dilation * column
                totals[:] = [
                    combined(total, elements(source, at, v), factors_of(table, tap, v))
                    for v, total in enumerate(totals)
                ]
            return totals

        def moved(table: Pointer | None, index: AnyInt, taps: int) -> Pointer | None:
            return None if table is None else table + index * (taps * together * nbytes)

        combine, totals = unrolled if self._unrolled else looped, list(neutral)
        for plane in repeat(f, *planes, 1, totals):
            source, of_plane = x + plane * f["down"], moved(table, plane, height.kernel * width.kernel)
            for index in repeat(f, *rows, 1, totals):
                start = source + index * f["across"], moved(of_plane, index, width.kernel)
                if how.sums_rows(width.kernel):
                    sums = combine(*start, list(neutral))
                    totals[:] = [total + x for total, x in zip(totals, sums, strict=True)]
                else:
                    totals[:] = combine(*start, list(totals))
        return totals

    def _reads(self, f: Function, at: int, first: AnyInt) -> Bool:
        """True if element first + at of the block is on the map and belongs to one of its windows."""
        if at >= self._kernel.axes[2].begin:
            return f["last"] > first + at
        return (f.integer(first + at) - f["first"]).below(f.maximum(f["last"] - f["first"], 0))

    def _store(self, f: Function, totals: list[Vec], starts: list[Pointer], count: int) -> None:
        """Store the results. Operands that are broadcast along columns or channels are read once."""
        kernel, lanes = self._kernel, self._kernel.lanes
        vectors = len(totals) // self._windows
        (plane, planes), (row, rows) = kernel.bounds(f)
        column = f.maximum(planes - plane, 0) * f.maximum(rows - row, 0)
        loaded: dict[tuple[int, int, int], Vec] = {}

        def offset(k: int, window: int, v: int) -> AnyInt:
            strides = kernel.strides[k]
            return kernel.column(f, k) * window + v * lanes * strides[1]

        for window in range(self._windows):
            with f.when(f["windows"] > window) if self._at_end and window else nullcontext():
                for v in range(vectors):
                    some = min(count - v * lanes, lanes)
                    values = [totals[window * vectors + v]]
                    for k in range(2, len(starts)):
                        strides = kernel.strides[k]
                        key = (k, window if strides[4] else 0, v if strides[1] else 0)
                        if key not in loaded:
                            loaded[key] = read(f, starts[k], offset(k, window, v), strides[1], some, kernel.elements[k])
                        values.append(loaded[key])
                    result = kernel.how.result(f, values, partial(self._elements, f, column, window), kernel.taps)
                    write(f, result, starts[1], offset(1, window, v), kernel.strides[1][1], some, kernel.elements[1])

    def _elements(self, f: Function, column: AnyInt, window: int) -> AnyInt:
        """The number of elements of a window on the map. `column`: this number along the other axes."""
        width = self._kernel.axes[2]
        if not self._unrolled:
            return column * f.maximum(f["taps"] - f["tap"], 0)
        if not self._at_end:
            return column * width.kernel
        first, last = clipped_taps(f, width, f["window"] + window, f["size"])
        return column * f.maximum(last - first, 0)
