"""Copies of 4-byte elements between tensors that are contiguous along different axes, by transposition in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import ANY, Axis, size_of
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
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
    height, width = (min(lanes, axis.size) for axis in (rows, columns))
    squares = min(max(1, LINE // (4 * lanes)), -(-columns.size // width))  # a cache line of the source per row
    outer = tuple(axis for axis in axes if axis is not rows and axis is not columns)
    return TransposedCopy(outer, lanes, rows, columns, height, width, squares)


@record()
class TransposedCopy(LineKernel):
    """Transposes squares of `lanes` × `lanes` elements in registers. Pointers: to, from.

    `rows`: the axis along which the target is contiguous; `columns`: the axis along which the source is. A unit is a
    band of `squares` squares of columns with all rows. The last squares overlap their neighbours. A square has
    `height` rows and `width` columns, fewer than `lanes` if the tensor has fewer. The code reads all sizes and strides;
    the sizes of a square and `squares` are compiled in.
    """

    lanes: int
    rows: Axis
    columns: Axis
    height: int
    width: int
    squares: int

    @property
    def code(self) -> TransposedCopy:
        return replace(self, outer=(), rows=Axis(ANY, (4, ANY)), columns=Axis(ANY, (ANY, 4)))

    @property
    def cycles(self) -> float:
        return size_of((*self.outer, self.rows, self.columns))

    @property
    def parts(self) -> int:
        return -(-self.columns.size // (self.width * self.squares))

    def write_part(self, f: Function, given: TransposedCopy, starts: list[Pointer], part: AnyInt) -> None:
        rows, columns, first = given.rows, given.columns, part * (self.width * self.squares)
        lefts = [f.minimum(first + k * self.width, columns.size - self.width) for k in range(self.squares)]
        for row in f.range(0, rows.size, self.height):
            top = f.minimum(row, rows.size - self.height)
            for left in lefts:
                steps = [top * r + left * c for r, c in zip(rows.strides, columns.strides, strict=True)]
                self._transpose(f, moved(starts, steps), rows.strides[1], columns.strides[0])

    def _transpose(self, f: Function, addresses: list[Pointer], down: AnyInt, right: AnyInt) -> None:
        """Transpose one square. `down`: row stride of the source; `right`: column stride of the target."""
        (target, source), missing = addresses, [f.zero()] * (self.lanes - self.height)
        square = [f.load(source, down * k, self.width) for k in range(self.height)] + missing
        for k, line in enumerate(transposed(f, square)[: self.width]):
            _store_first(f, line, target + right * k, self.height)


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
