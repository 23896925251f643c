"""Windows that slide over maps, with vectors over channels: several columns of the output at once, padding skipped.

Taps along the columns are unrolled, and elements that neighbouring windows share are loaded once. Windows at both ends
of a row, some of whose taps are padding, have separate code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.kernels.loops import accumulate, repeat
from irload.plan.backends.llvm.kernels.window_rows import Row, WindowRows
from irload.plan.backends.llvm.kernels.windows import emit_taps, in_blocks, readers
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.target import LINE, Target
from irload.plan.backends.llvm.tuning import FEW_COLUMNS, FEW_ROWS, WIDE, WINDOW_CHAINS
from irload.record import record


@record()
class SlidingWindows(WindowRows):
    """Combines the elements of each window. `vectors` × `columns` totals are computed together.

    The table has a factor for each tap and channel: [vector of channels, tap, lane]. `unrolled`: the taps along columns
    are unrolled, else they are a loop. Compiled in are the window, the tile, the tail of the channels and their stride.
    """

    vectors: int
    columns: int
    unrolled: bool

    @property
    def cycles(self) -> float:
        is_dense = all(s[1] == SIZES[e] for s, e in zip(self.strides[:2], self.elements[:2], strict=True))
        loads = -(-self.channels // self.lanes) if is_dense else self.channels
        return self.batch * prod(axis.count for axis in self.axes) * loads * (2 + 0.6 * self.taps)

    @property
    def tail(self) -> int:
        step = self.vectors * self.lanes
        return self.channels % step + (step if self.channels >= step else 0)

    @property
    def taps(self) -> int:
        """The taps of a window."""
        return prod(axis.kernel for axis in self.axes)

    @property
    def sums_rows(self) -> bool:
        """True if each row of a window is summed separately, which keeps long sums accurate."""
        return False

    @abstractmethod
    def neutral(self, f: Function) -> Vec:
        """The total of no elements."""

    @abstractmethod
    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        """The total with one more element."""

    @abstractmethod
    def result(self, f: Function, values: list[Vec], elements: AnyInt) -> Vec:
        """The result from the values, which are the total of the elements and the operands."""

    def write_row(self, f: Function, row: Row, table: Pointer | None) -> None:
        width, step = self.axes[2], self.vectors * self.lanes
        whole = row.last // step * step
        columns = [strides[4] for strides in row.strides]
        tables = () if table is None else (table,)

        def write_channels(tail: int, first: AnyInt, last: AnyInt) -> None:
            bounds = [*row.planes, *row.rows, first, last, *row.pitches, *columns]

            def windows(at: AnyInt, taps: Sequence[range] | None) -> None:
                steps = [at * width.stride, *[at] * (len(columns) - 1)]
                places = [p + step * column for p, step, column in zip(row.tensors, steps, columns, strict=True)]
                along = () if taps is not None else emit_taps(f, width, at, row.size)
                f.call(_Block(self, taps, tail).function(f), [*places, *tables, *bounds, *along])

            if self.unrolled:
                in_blocks(f, width, row.count, FEW_COLUMNS if tail and self.channels > tail else self.columns, windows)
            else:
                repeat(f, 0, row.count, 1, lambda at: windows(at, None))

        if self.channels >= step:
            write_channels(0, row.first, whole)
        if tail := self.channels % step:
            f.when(whole < row.last, lambda: write_channels(tail, whole, row.last))


class _Block:
    """The function that writes neighbouring windows for a range of the channels.

    `taps`: of each window along the columns; None for one window whose taps are known at run time. `tail`: the channels
    of the last vectors, 0 for whole vectors.
    """

    def __init__(self, kernel: SlidingWindows, taps: Sequence[range] | None, tail: int) -> None:
        self._kernel = kernel
        self._taps = taps
        self._tail = tail
        self._windows = 1 if taps is None else len(taps)

    def function(self, caller: Function) -> str:
        """The name of the function, written when it is first needed."""
        taps, kernel = self._taps, self._kernel
        name = "tail" if self._tail else "windows"
        name += "" if taps is None else "".join(f"_{valid.start}_{valid.stop}" for valid in taps)
        if not caller.module.has(name):
            pointers = [f"ptr tensor{k}" for k in range(len(kernel.strides))] + ["ptr table"] * kernel.has_table
            bounds = ["plane", "planes", "row", "rows", "channel", "channels", "down", "across"]
            bounds += [f"column{k}" for k in range(len(kernel.strides))]
            bounds += ["tap", "taps"] if taps is None else []
            self._write(caller.module.function(name, [*pointers, *(f"i64 {bound}" for bound in bounds)]))
        return name

    def _write(self, f: Function) -> None:
        kernel = self._kernel
        tensors = [f[f"tensor{k}"] for k in range(len(kernel.strides))]

        def channels(channel: AnyInt, count: int) -> None:
            places = [p + channel * s[1] for p, s in zip(tensors, kernel.strides, strict=True)]
            table = f["table"] + channel * (4 * kernel.taps) if kernel.has_table else None
            self._store(f, self._totals(f, places[0], table, count), places, count)

        if self._tail:
            channels(f["channel"], self._tail)
        else:
            step = kernel.vectors * kernel.lanes
            f.loop(f["channel"], f["channels"], step, lambda at, _: channels(at, step))

    def _bounds(self, f: Function) -> tuple[tuple[AnyInt, AnyInt], tuple[AnyInt, AnyInt]]:
        def emitted(axis: WindowAxis, name: str) -> tuple[AnyInt, AnyInt]:
            return (f[name], f[f"{name}s"]) if axis.is_padded else (0, axis.kernel)

        depth, height, _ = self._kernel.axes
        return emitted(depth, "plane"), emitted(height, "row")

    def _totals(self, f: Function, x: Pointer, table: Pointer | None, count: int) -> list[Vec]:
        """The totals of `count` channels, vector by vector of each window."""
        kernel, windows = self._kernel, self._windows
        _, height, width = kernel.axes
        vectors = -(-count // kernel.lanes)
        planes, rows = self._bounds(f)
        neutral = [kernel.neutral(f)] * (windows * vectors)
        channel, column, nbytes = kernel.strides[0][1], f["column0"], f.target.bytes

        def element(place: Pointer, at: AnyInt, v: int) -> Vec:
            lanes = min(count - v * kernel.lanes, kernel.lanes)
            return read(f, place, at + v * kernel.lanes * channel, channel, lanes, kernel.elements[0])

        def factor(factors: Pointer | None, tap: AnyInt, v: int) -> Vec | None:
            return None if factors is None else f.load(factors, (tap + v * kernel.taps) * nbytes, align=nbytes)

        def unrolled(place: Pointer, factors: Pointer | None, totals: list[Vec]) -> list[Vec]:
            loaded: dict[tuple[int, int], Vec | None] = {}
            for at, pairs in sorted(readers(width, self._taps or ()).items()):
                for v in range(vectors):
                    x = element(place, column * at, v)
                    for window, tap in pairs:
                        if (tap, v) not in loaded:
                            loaded[tap, v] = factor(factors, tap, v)
                        k = window * vectors + v
                        totals[k] = kernel.combined(f, totals[k], x, loaded[tap, v])
            return totals

        def looped(place: Pointer, factors: Pointer | None, totals: list[Vec]) -> list[Vec]:
            def one(tap: AnyInt, totals: list[Vec]) -> list[Vec]:
                at = tap * width.dilation * column
                return [
                    kernel.combined(f, total, element(place, at, v), factor(factors, tap, v))
                    for v, total in enumerate(totals)
                ]

            return accumulate(f, (f["tap"], f["taps"]), one, totals)

        def in_row(place: Pointer, factors: Pointer | None, totals: list[Vec]) -> list[Vec]:
            combine = looped if self._taps is None else unrolled
            if not kernel.sums_rows:
                return combine(place, factors, list(totals))
            sums = combine(place, factors, list(neutral))
            return [total + x for total, x in zip(totals, sums, strict=True)]

        def moved(factors: Pointer | None, index: AnyInt, taps: int) -> Pointer | None:
            return None if factors is None else factors + index * (taps * nbytes)

        def in_plane(plane: AnyInt, totals: list[Vec]) -> list[Vec]:
            place, factors = x + plane * f["down"], moved(table, plane, height.kernel * width.kernel)

            def row(index: AnyInt, totals: list[Vec]) -> list[Vec]:
                return in_row(place + index * f["across"], moved(factors, index, width.kernel), totals)

            return accumulate(f, rows, row, totals)

        return accumulate(f, planes, in_plane, neutral)

    def _store(self, f: Function, totals: list[Vec], places: list[Pointer], count: int) -> None:
        """Store the results. Operands that are the same for all windows are read once."""
        kernel, lanes = self._kernel, self._kernel.lanes
        vectors = len(totals) // self._windows
        (plane, planes), (row, rows) = self._bounds(f)
        column = f.maximum(planes - plane, 0) * f.maximum(rows - row, 0)
        same: dict[tuple[int, int, int], Vec] = {}

        def place(k: int, window: int, v: int) -> AnyInt:
            strides = kernel.strides[k]
            return (f[f"column{k}"] * window if strides[4] else 0) + v * lanes * strides[1]

        for window in range(self._windows):
            taps = f.maximum(f["taps"] - f["tap"], 0) if self._taps is None else len(self._taps[window])
            for v in range(vectors):
                some = min(count - v * lanes, lanes)
                values = [totals[window * vectors + v]]
                for k in range(2, len(places)):
                    strides = kernel.strides[k]
                    key = (k, window if strides[4] else 0, v if strides[1] else 0)
                    if key not in same:
                        same[key] = read(f, places[k], place(k, window, v), strides[1], some, kernel.elements[k])
                    values.append(same[key])
                result = kernel.result(f, values, column * taps)
                write(f, result, places[1], place(1, window, v), kernel.strides[1][1], some, kernel.elements[1])


def tile_of(target: Target, channels: int, width: WindowAxis, *, unrolled: bool) -> tuple[int, int]:
    """Vectors of channels and columns of a block.

    The vectors fill a cache line, unless the factors of a row would occupy too many registers. Rows of one window have
    one column.
    """
    line = LINE // target.bytes if width.kernel < WIDE else 1
    alone = width.count == 1 or not unrolled
    vectors = min(WINDOW_CHAINS if alone else line, -(-channels // target.lanes))
    return vectors, 1 if alone else WINDOW_CHAINS // vectors


def share_of(target: Target, threads: int, channels: int, rows: int, vectors: int) -> int:
    """The channels of a unit: all of them unless threads share few rows."""
    if threads == 1 or rows >= FEW_ROWS:
        return channels
    block = vectors * target.lanes
    return max(-(-channels // (4 * block)), 1) * block
