"""Copies of 4-byte elements that are contiguous along one axis in one tensor, and along another one in the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irload.plan.backends.llvm.axes import Axis, offsets
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.shuffles import transposed
from irload.record import record

TOGETHER = 64
"""Bytes of each row of the source that are read together: a cache line."""


def contiguous_axes(axes: Sequence[Axis]) -> tuple[tuple[Axis, ...], Axis, Axis] | None:
    """The outer axes, the one along which the target is contiguous, and that of the source.

    None where there are no two such axes. The strides of an axis are those of target and source.
    """
    inner = next((axis for axis in axes if axis.strides[0] == 4), None)
    other = next((axis for axis in axes if axis.strides[1] == 4), None)
    if inner is None or other is None or inner is other:
        return None
    return tuple(axis for axis in axes if axis is not inner and axis is not other), inner, other


@record()
class TransposedCopy(Kernel):
    """Squares of elements, turned in registers. Pointers: to, from.

    `rows`: the axis along which the target is contiguous, `columns`: that of the source. A unit is a band of columns,
    all rows. The last squares overlap those before them.
    """

    lanes: int
    outer: tuple[Axis, ...]
    rows: Axis
    columns: Axis

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer) * self._bands

    @property
    def cycles(self) -> float:
        return prod(axis.size for axis in self.outer) * self.rows.size * self.columns.size

    @property
    def _height(self) -> int:
        """Rows of a square."""
        return min(self.lanes, self.rows.size)

    @property
    def _width(self) -> int:
        """Columns of a square."""
        return min(self.lanes, self.columns.size)

    @property
    def _squares(self) -> int:
        """Squares next to each other in a band."""
        return min(max(1, TOGETHER // (4 * self.lanes)), -(-self.columns.size // self._width))

    @property
    def _bands(self) -> int:
        return -(-self.columns.size // (self._width * self._squares))

    def write(self, function: Function) -> None:
        f = function
        target, source = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))

        def band(index: Value, _: list[Value]) -> None:
            line, at = f.divmod(index, self._bands)
            places = [f.at(p, o) for p, o in zip((target, source), offsets(f, line, self.outer, 2), strict=True)]
            first = f.multiply(at, self._width * self._squares)
            columns = [
                f.minimum(f.add(first, k * self._width), self.columns.size - self._width) for k in range(self._squares)
            ]

            def squares(row: Value, _: list[Value]) -> None:
                top = f.minimum(f.multiply(row, self._height), self.rows.size - self._height)
                for column in columns:
                    self._turn(f, places, top, column)

            f.loop(0, -(-self.rows.size // self._height), 1, squares)

        f.loop(f["begin"], f["end"], 1, band)

    def _turn(self, f: Function, places: list[Value], row: Int, column: Int) -> None:
        target, source = (
            f.at(p, f.add(f.multiply(row, r), f.multiply(column, c)))
            for p, r, c in zip(places, self.rows.strides, self.columns.strides, strict=True)
        )
        square = [f.load(source, k * self.rows.strides[1], self._width) for k in range(self._height)]
        square += [f.zero()] * (self.lanes - self._height)
        for k, line in enumerate(transposed(f, square)[: self._width]):
            _store_first(f, line, f.at(target, k * self.columns.strides[0]), self._height)


def _store_first(f: Function, value: Value, pointer: Value, count: int) -> None:
    """Store the first elements in pieces, as stores with a mask are slow on some processors."""
    if count == f.lanes:
        f.store(value, pointer)
        return
    done = 0
    while done < count:
        width = 1 << ((count - done).bit_length() - 1)
        kind, lanes = f"<{width} x float>", ", ".join(f"i32 {k}" for k in range(done, done + width))
        piece = f.value(kind, f"shufflevector {f.vector} {value}, {f.vector} poison, <{width} x i32> <{lanes}>")
        f.emit(f"store {kind} {piece}, ptr {f.at(pointer, 4 * done)}, align 4")
        done += width
