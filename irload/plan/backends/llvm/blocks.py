"""How kernels that work row by row cut their positions into units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from irload.plan.backends.llvm.axes import Axis, offsets
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.spans import moved
from irload.record import record

Row = Callable[[list[Value], Int, Int], None]
"""(pointers, first, last) → the code for the vectors first…last−1 of the row that begins at the pointers."""


@record()
class Blocks:
    """Rows along the last of several axes, in units of about `size` positions.

    A unit is a block of rows, or a chunk of one where rows are long: so many times `lanes` positions, and what is left
    of the row with the last chunk.
    """

    axes: tuple[Axis, ...]
    lanes: int
    tensors: int
    size: int = 4096

    @property
    def row(self) -> Axis:
        """The axis along which rows lie."""
        return self.axes[-1] if self.axes else Axis(1, (0,) * self.tensors)

    @property
    def rows(self) -> Axis:
        """The axis along which rows are neighbours."""
        return self.axes[-2] if len(self.axes) > 1 else Axis(1, (0,) * self.tensors)

    @property
    def vectors(self) -> int:
        """Whole vectors of a row."""
        return self.row.size // self.lanes

    @property
    def rest(self) -> int:
        """Positions of a row behind its whole vectors."""
        return self.row.size % self.lanes

    @property
    def count(self) -> int:
        """The units."""
        return prod(axis.size for axis in self.axes[:-2]) * self._blocks * self.chunks

    @property
    def chunks(self) -> int:
        """The chunks of a row."""
        return max(1, -(-self.vectors // self._width))

    @property
    def _width(self) -> int:
        """Vectors of a chunk."""
        return max(1, min(self.size // self.lanes, self.vectors))

    @property
    def _height(self) -> int:
        """Rows of a block."""
        return min(max(1, self.size // self.row.size), self.rows.size)

    @property
    def _blocks(self) -> int:
        return -(-self.rows.size // self._height)

    def walk(self, f: Function, begin: Int, end: Int, pointers: Sequence[Value], row: Row) -> None:
        """Write the code of `row` for all rows of the units begin…end−1. `pointers`: position 0 of each tensor."""

        def unit(index: Value, _: list[Value]) -> None:
            line, chunk = f.divmod(index, self.chunks)
            line, block = f.divmod(line, self._blocks)
            first = f.multiply(chunk, self._width)
            last = f.minimum(f.add(first, self._width), self.vectors) if self.chunks > 1 else self.vectors
            start = moved(f, pointers, offsets(f, line, self.axes[:-2], self.tensors))
            if self.rows.size == 1:
                row(start, first, last)
                return

            def each(at: Value, _: list[Value]) -> None:
                row(moved(f, start, [f.multiply(at, stride) for stride in self.rows.strides]), first, last)

            top = f.multiply(block, self._height)
            bottom = f.minimum(f.add(top, self._height), self.rows.size) if self._blocks > 1 else self.rows.size
            f.loop(top, bottom, 1, each)

        f.loop(begin, end, 1, unit)

    def at_end(self, f: Function, last: Int, body: Callable[[], None]) -> None:
        """Write the code of `body`, which is to run where a row's last vector is the row's last one."""
        if self.chunks > 1:
            f.when(f.compare("eq", last, self.vectors), body)
        else:
            body()


def unrolled(f: Function, first: Int, last: Int, times: int, body: Callable[[Int], None]) -> None:
    """`for k in range(first, last): body(k)`, so many times a turn, then one by one."""
    length = f.subtract(last, first)
    middle = f.add(first, f.subtract(length, f.remainder(length, times)))

    def turn(at: Value, _: list[Value]) -> None:
        for k in range(times):
            body(f.add(at, k))

    if not isinstance(length, int) or length >= times:
        f.loop(first, middle, times, turn)
    if not isinstance(length, int) or length % times:
        f.loop(middle, last, 1, lambda at, _: body(at))
