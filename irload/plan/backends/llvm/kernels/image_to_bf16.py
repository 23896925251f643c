"""Copies of images of few channels as bf16, padded, channels innermost: a window along columns is one run of memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import ClassVar

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, each_part
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, positions
from irload.plan.backends.llvm.operands import read_rounded
from irload.plan.backends.llvm.shuffles import shuffled
from irload.plan.backends.llvm.spatial import Spatial
from irload.record import record


@record()
class ImageToBf16(Kernel):
    """Images of f32 → [batch, lines…, column, member] in bf16. Pointers: from, to.

    The `members` of a column are its channels, then zeros: a power of 2, which columns of the data need not have.
    `lines` and `columns` are axes of one tap, whose outputs are the positions of the copy, zeros beyond the data.
    `channel`: bytes between channels, which lie beside each other in each column, or columns in each channel.
    """

    batch: Strided
    lines: tuple[Spatial, ...]
    columns: Spatial
    channels: int
    channel: int
    members: int

    prepares: ClassVar[bool] = True

    @property
    def code(self) -> ImageToBf16:
        return replace(self, batch=replace(self.batch, size=0))

    @property
    def count(self) -> int:
        return self.batch.size * prod(axis.length for axis in self.lines)

    @property
    def nbytes(self) -> int:
        """The bytes of the copy."""
        return self.count * self._line

    @property
    def _column(self) -> int:
        """The bytes of a column."""
        return self.members * bfloat16.BYTES

    @property
    def _line(self) -> int:
        """The bytes of a line."""
        return self.columns.length * self._column

    @property
    def cycles(self) -> float:
        return self.count * self.columns.length * (2 + self.members) / 4

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours in the copy, along batch, lines and columns."""
        sizes = [self.batch.size, *(axis.length for axis in self.lines), self.columns.length]
        return tuple(prod(sizes[k + 1 :]) * self._column for k in range(len(sizes)))

    def write(self, function: Function) -> None:
        f = function
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))
        first = min(max(self.columns.begin, 0), self.columns.length)
        stop = min(max(self.columns.begin + self.columns.size, first), self.columns.length)

        def line(index: Value, _: list[Value]) -> None:
            place = f.at(target, f.multiply(index, self._line))
            batch, at = digits(f, index, [axis.length for axis in self.lines])
            offset, inside = positions(f, self.lines, at, [0] * len(self.lines))
            offset = f.add(offset, f.multiply(batch, self.batch.stride))
            offset = f.add(offset, (first - self.columns.begin) * self.columns.stride)

            def copy() -> None:
                self._clear(f, place, 0, first)
                self._copy(f, f.at(source, offset), f.at(place, first * self._column), stop - first)
                self._clear(f, place, stop, self.columns.length)

            if inside is None:
                copy()
            else:
                f.when(inside, copy, lambda: self._clear(f, place, 0, self.columns.length))

        f.loop(f["begin"], f["end"], 1, line)

    def _clear(self, f: Function, place: Value, first: int, stop: int) -> None:
        """Zeros at the columns first…stop−1 of a line."""
        start = f.at(place, first * self._column)

        def some(at: Int, count: int) -> None:
            bfloat16.store_lanes(f, bfloat16.zeros(f), start, f.multiply(at, bfloat16.BYTES), count)

        each_part(f, (stop - first) * self.members, f.lanes, some)

    def _copy(self, f: Function, source: Value, target: Value, columns: int) -> None:
        """So many columns of a line."""
        if self.columns.stride == SIZES[F32]:
            each_part(f, columns, f.lanes, lambda at, count: self._join(f, source, target, at, count))
        elif self.members == self.channels:
            each_part(f, columns * self.channels, f.lanes, lambda at, count: self._round(f, source, target, at, count))
        else:
            each_part(f, columns, f.lanes // self.members, lambda at, count: self._spread(f, source, target, at, count))

    def _join(self, f: Function, source: Value, target: Value, at: Int, count: int) -> None:
        """Columns of lines of one channel each."""
        members = [bfloat16.zeros(f)] * self.members
        for c in range(self.channels):
            offset = f.add(f.multiply(at, SIZES[F32]), c * self.channel)
            members[c] = read_rounded(f, source, offset, SIZES[F32], count)
        self._store(f, bfloat16.interleaved(f, members), target, at, count)

    def _round(self, f: Function, source: Value, target: Value, at: Int, count: int) -> None:
        """Elements that lie in the copy as in the data."""
        value = read_rounded(f, source, f.multiply(at, SIZES[F32]), SIZES[F32], count)
        bfloat16.store_lanes(f, value, target, f.multiply(at, bfloat16.BYTES), count)

    def _spread(self, f: Function, source: Value, target: Value, at: Int, count: int) -> None:
        """Columns whose channels lie beside each other, which need more members."""
        found = f.load(source, f.multiply(at, self.columns.stride), count * self.channels)
        lanes = [
            column * self.channels + member if member < self.channels else f.lanes
            for column in range(f.lanes // self.members)
            for member in range(self.members)
        ]
        self._store(f, bfloat16.rounded(f, shuffled(f, found, f.zero(), lanes)), target, at, count)

    def _store(self, f: Function, halves: Value, target: Value, at: Int, count: int) -> None:
        """Store `count` columns."""
        bfloat16.store_first(f, halves, target, f.multiply(at, self._column), count * self.members)
