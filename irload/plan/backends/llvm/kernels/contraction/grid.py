"""Maps columns of a contraction to outputs of a convolution, and rows of a tile to addresses, instead of im2col."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.axes import ANY, any_strides
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Int, Pointer
from irload.plan.backends.llvm.kernels.loops import digits, indices, offset
from irload.plan.backends.llvm.kernels.windows import clipped_taps
from irload.plan.backends.llvm.tile import WindowedRows
from irload.record import record


@record()
class Grid:
    """The outputs of a convolution in the order of the columns: along all spatial axes, the last axis innermost.

    For each axis: `windows`, and whether some of them contain padding (`padded`). Strides in bytes: `data`, of the
    elements of the data; `results`, of the outputs in y and in each operand.
    """

    windows: tuple[WindowAxis, ...]
    padded: tuple[bool, ...]
    data: tuple[int, ...]
    results: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> Grid:
        """The grid of code that reads all sizes and strides."""
        windows = tuple(replace(w, size=ANY, count=ANY) for w in self.windows)
        return Grid(windows, self.padded, any_strides(self.data), tuple(map(any_strides, self.results)))

    @property
    def steps(self) -> tuple[AnyInt, ...]:
        """The bytes between the data of neighbouring outputs."""
        return tuple(pitch * w.stride for pitch, w in zip(self.data, self.windows, strict=True))

    def skips(self, outputs: int) -> bool:
        """True if taps may be in the padding for all of `outputs` neighbours on a line, as with large dilations."""
        window = self.windows[-1]
        return self.padded[-1] and window.begin >= outputs * window.stride

    def position(self, column: AnyInt) -> list[AnyInt]:
        """The position of a column along each axis."""
        return indices(column, [w.count for w in self.windows])

    def start(self, at: Sequence[AnyInt]) -> AnyInt:
        """The bytes from the data to the first tap of an output."""
        firsts = [n * w.stride - w.begin for n, w in zip(at, self.windows, strict=True)]
        return offset(self.data, firsts)

    def on_one_line(self, at: Sequence[AnyInt], outputs: int) -> AnyInt | Bool:
        """True if `outputs` columns from `at` on are on one line, and all their taps along it are inside the data."""
        window, first = self.windows[-1], at[-1]
        fits = first + outputs <= window.count
        if not self.padded[-1]:
            return fits
        begin = first * window.stride - window.begin
        last = begin + ((outputs - 1) * window.stride + (window.kernel - 1) * window.dilation)
        return fits & (begin >= 0) & (last < window.size)

    def taps(self, f: Function, axis: int, at: Sequence[AnyInt]) -> tuple[AnyInt, AnyInt]:
        """The range of the taps along an axis that are inside the data: the first, and the one after the last."""
        window = self.windows[axis]
        return clipped_taps(f, window, at[axis], window.size) if self.padded[axis] else (0, window.kernel)


class GridRows:
    """The rows of a tile: `most` outputs from `start` on, on one or more lines. Rows ≥ `count` repeat the last row."""

    def __init__(self, f: Function, grid: Grid, start: Sequence[AnyInt], most: int, count: AnyInt) -> None:
        self._f, self._grid, self._count = f, grid, count
        self.positions: list[list[AnyInt]] = [list(start)]
        """For each output, its position along each axis."""
        for k in range(1, most):
            last = self.positions[-1]
            following: list[AnyInt] = self._next(last)
            if isinstance(count, Int):
                is_own = count > k
                following = [f.select(is_own, f.integer(b), f.integer(a)) for a, b in zip(last, following, strict=True)]
            self.positions.append(following)

    def data(self, x: Pointer) -> list[Pointer]:
        """The address of the data of each output; `x`: of the first one."""
        return [x + self._offset(self._grid.steps, row) for row in range(len(self.positions))]

    def windowed(self, zeros: Pointer) -> WindowedRows:
        """The windows of each output. `zeros`: memory that taps in the padding read instead of the data."""
        axes = list(zip(self._grid.windows, self._grid.padded, strict=True))
        firsts = [[n * w.stride - w.begin for n, (w, _) in zip(at, axes, strict=True)] for at in self.positions]
        sizes = [w.size if padded else None for w, padded in axes]
        return WindowedRows(firsts, sizes, [w.dilation for w, _ in axes], zeros)

    def taps(self, axis: int) -> tuple[AnyInt, AnyInt]:
        """A range of taps along an axis that contains all taps inside the data of any output."""
        f, window = self._f, self._grid.windows[axis]
        first, last = self.positions[0], self.positions[-1]
        begin, end = f.integer(self._grid.taps(f, axis, last)[0]), f.integer(self._grid.taps(f, axis, first)[1])
        for a, b in zip(first[:axis], last[:axis], strict=True):
            together = f.equal(a, b)
            begin = f.select(together, begin, f.integer(0))
            end = f.select(together, end, f.integer(window.kernel))
        return begin, end

    def result(self, tensor: int, row: AnyInt) -> AnyInt:
        """The bytes from the first output to another one, in y or an operand."""
        return self._offset(self._grid.results[tensor], row)

    def _offset(self, strides: Sequence[AnyInt], row: AnyInt) -> AnyInt:
        first = self.positions[0]
        at = self.positions[row] if isinstance(row, int) else self._position(self._f.minimum(row, self._count - 1))
        return offset(strides, [b - a if b is not a else 0 for a, b in zip(first, at, strict=True)])

    def _position(self, row: AnyInt) -> list[AnyInt]:
        """The position `row` outputs after the first one."""
        *outer, last = self.positions[0]
        counts = [w.count for w in self._grid.windows]
        column = last + row
        positions: list[AnyInt] = []
        for at, count in zip(reversed(outer), reversed(counts[1:]), strict=True):
            rest, (at_axis,) = digits(column, [count])
            positions.insert(0, at_axis)
            column = at + rest
        return [column, *positions]

    def _next(self, at: Sequence[AnyInt]) -> list[AnyInt]:
        f, following = self._f, list(at)
        following[-1] = following[-1] + 1
        for k in range(len(following) - 1, 0, -1):
            ends = f.equal(following[k], self._grid.windows[k].count)
            following[k] = f.select(ends, f.integer(0), f.integer(following[k]))
            following[k - 1] = following[k - 1] + ends.as_int()
        return following


class LineRows:
    """The rows of a tile: `most` columns of a line. Rows beyond `count` repeat the last one.

    `strides`: bytes between columns in x, y and the operands.
    """

    def __init__(self, f: Function, strides: Sequence[AnyInt], most: int, count: AnyInt) -> None:
        self._f, self._strides, self._most, self._last = f, strides, most, count - 1

    def data(self, x: Pointer) -> list[Pointer]:
        """The address of the data of each column; `x`: of the first one."""
        return [x + self._f.minimum(row, self._last) * self._strides[0] for row in range(self._most)]

    def result(self, tensor: int, row: AnyInt) -> AnyInt:
        """The bytes from the first column to another one, in y or an operand."""
        return self._f.minimum(row, self._last) * self._strides[1 + tensor]
