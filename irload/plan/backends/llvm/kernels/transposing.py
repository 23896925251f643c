"""Copies of 4-byte elements between tensors that are contiguous along different axes, by transposition in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.llvm.arguments import Arguments, moved, walk_lines
from irload.plan.backends.llvm.axes import Axis, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import LINE
from irload.record import record


def contiguous_axes(axes: Sequence[Axis]) -> tuple[tuple[Axis, ...], Axis, Axis] | None:
    """The outer axes, the axis along which the target is contiguous, and the axis along which the source is.

    None unless these are two different axes. Each axis has the strides of the target and the source.
    """
    inner = next((axis for axis in axes if axis.strides[0] == 4), None)
    other = next((axis for axis in axes if axis.strides[1] == 4), None)
    if inner is None or other is None or inner is other:
        return None
    return tuple(axis for axis in axes if axis is not inner and axis is not other), inner, other


@record()
class TransposedCopy(LineKernel):
    """Transposes squares of `lanes` × `lanes` elements in registers. Pointers: to, from.

    `rows`: the axis along which the target is contiguous; `columns`: the axis along which the source is. A unit is a
    band of columns with all rows. The last squares overlap their neighbours. The code reads all sizes and strides;
    sizes smaller than a square, and the squares per band, are compiled in.
    """

    lanes: int
    rows: Axis
    columns: Axis

    @property
    def code(self) -> TransposedCopy:
        height, width = self._square
        return replace(self, outer=(), rows=Axis(height, ()), columns=Axis(width * self._squares, ()))

    @property
    def numbers(self) -> tuple[int, ...]:
        sizes = self.rows.size, self.columns.size, self.parts
        return (*sizes, self.rows.strides[1], self.columns.strides[0], *table(self.outer, 2))

    @property
    def cycles(self) -> float:
        return size_of((*self.outer, self.rows, self.columns))

    @property
    def _square(self) -> tuple[int, int]:
        """The rows and columns of a square."""
        return min(self.lanes, self.rows.size), min(self.lanes, self.columns.size)

    @property
    def _squares(self) -> int:
        """The squares per row of a band: a cache line of the source, if there are enough columns."""
        return min(max(1, LINE // (4 * self.lanes)), -(-self.columns.size // self._square[1]))

    @property
    def parts(self) -> int:
        return -(-self.columns.size // (self._square[1] * self._squares))

    def write(self, function: Function) -> None:
        f, arguments, (height, width) = function, Arguments(function), self._square
        pointers = arguments.pointers(2)
        rows, columns, bands, down, right = arguments.integers(5)
        for starts, number in walk_lines(f, bands, arguments.table(2), pointers):
            first = number * (width * self._squares)
            lefts = [f.minimum(first + k * width, columns - width) for k in range(self._squares)]
            for row in f.range(0, rows, height):
                top = f.minimum(row, rows - height)
                for column in lefts:
                    self._transpose(f, moved(starts, [top * 4 + column * right, top * down + column * 4]), down, right)

    def _transpose(self, f: Function, addresses: list[Pointer], down: AnyInt, right: AnyInt) -> None:
        """Transpose one square. `down`: row stride of the source; `right`: column stride of the target."""
        (target, source), (height, width) = addresses, self._square
        square = [f.load(source, down * k, width) for k in range(height)] + [f.zero()] * (self.lanes - height)
        for k, line in enumerate(transposed(f, square)[:width]):
            _store_first(f, line, target + right * k, height)


def _store_first(f: Function, value: Vec, pointer: Pointer, count: int) -> None:
    """Store the first elements in powers of 2, since masked stores are slow on some processors."""
    done = 0
    while done < count:
        width = 1 << ((count - done).bit_length() - 1)
        if width == 1:
            f.store_scalar(value.lane(done), pointer, 4 * done)
        else:
            f.store(f.shuffle(value, value, range(done, done + width)), pointer, 4 * done)
        done += width
