"""Copies of 4-byte elements between tensors that are contiguous along different axes, by transposition in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.llvm.arguments import Arguments, moved
from irload.plan.backends.llvm.axes import Axis, size_of
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import LINE
from irload.record import record


def transposed_copy(axes: Sequence[Axis], lanes: int) -> TransposedCopy | None:
    """The copy along axes with the strides of the target and the source.

    None unless both are contiguous, along different axes.
    """
    rows, columns = (next((axis for axis in axes if axis.strides[k] == 4), None) for k in (0, 1))
    if rows is None or columns is None or rows is columns:
        return None
    return TransposedCopy(tuple(a for a in axes if a is not rows and a is not columns), lanes, rows, columns)


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
    def given_numbers(self) -> tuple[int, ...]:
        return self.rows.size, self.columns.size, self.rows.strides[1], self.columns.strides[0]

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

    def read(self, arguments: Arguments) -> list[Int]:
        return arguments.integers(4)

    def write_part(self, f: Function, given: list[Int], starts: list[Pointer], part: AnyInt) -> None:
        (rows, columns, down, right), (height, width) = given, self._square
        first = part * (width * self._squares)
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
