"""Copies of images of few channels as bf16: a row of a tile holds the whole window along columns of all channels."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, digits, positions
from irload.plan.backends.llvm.operands import read_rounded
from irload.plan.backends.llvm.spatial import Spatial
from irload.record import record


@record()
class Runs:
    """Elements of a window along columns that lie beside each other: `count` runs of `length`, `stride` bytes apart.

    `unit`: elements between columns of the data. Planar images have a run for each channel, those with their channels
    innermost one of all columns and channels.
    """

    count: int
    length: int
    stride: int
    unit: int

    @property
    def fit(self) -> bool:
        """True where they fit into a row of a tile, stored one after the other as a vector each."""
        return self.count * self.length <= tiles.DEPTH and (self.count == 1 or self.length <= tiles.ROWS)

    def vectors(self, pitch: int) -> list[tuple[int, int, int]]:
        """What a row is stored as: bytes into the source, whose runs are `pitch` apart, into the row, and elements."""
        half = tiles.ROWS
        if self.count == 1:
            return [(0, 0, self.length), (4 * half, bfloat16.BYTES * half, self.length - half)]
        runs = [(r * pitch, r * self.length * bfloat16.BYTES, self.length) for r in range(self.count)]
        return [(0, bfloat16.BYTES * half, 0), *runs]


@record()
class WindowsToBf16(Kernel):
    """Images of f32 → [batch, phases…, positions…, column, 32] in bf16. Pointers: from, to.

    Phases and positions are those of the `outer` spatial axes. Each column of the output has the runs of its window,
    then zeros; what is beyond the image is 0.
    """

    batch: Strided
    outer: tuple[Spatial, ...]
    columns: Spatial
    runs: Runs

    prepares: ClassVar[bool] = True

    @property
    def count(self) -> int:
        return self.batch.size * prod(s.phases * s.length for s in self.outer)

    @property
    def nbytes(self) -> int:
        """The bytes of the copy."""
        return self.count * self.columns.count * tiles.BYTES

    @property
    def cycles(self) -> float:
        return self.count * self.columns.count * (3 + 3 * self.runs.count)

    @property
    def scratch(self) -> int:
        return self.runs.count * self._pitch

    @property
    def _span(self) -> int:
        """The columns of the padded image that windows reach."""
        return (self.columns.count - 1) * self.columns.step + self.columns.taps

    @property
    def _pitch(self) -> int:
        """The bytes of a line of one run, with a vector more to be read."""
        return -(-(self._span * self.runs.unit + tiles.ROWS) // 16) * 64

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours in the copy, along batch, phases, positions and columns."""
        sizes = [self.batch.size, *(s.phases for s in self.outer), *(s.length for s in self.outer), self.columns.count]
        return tuple(prod(sizes[k + 1 :]) * tiles.BYTES for k in range(len(sizes)))

    def write(self, function: Function) -> None:
        f = function
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))

        def clear(at: Value, _: list[Value]) -> None:
            f.store(f.zero(), f["scratch"], at)

        def line(index: Value, _: list[Value]) -> None:
            place = f.at(target, f.multiply(index, self.columns.count * tiles.BYTES))
            rest, at = digits(f, index, [s.length for s in self.outer])
            rest, phases = digits(f, rest, [s.phases for s in self.outer])
            offset, inside = positions(f, self.outer, at, phases)
            start = f.at(source, f.add(offset, f.multiply(rest, self.batch.stride)))

            def copy() -> None:
                self._copy(f, start)
                self._windows(f, place)

            if inside is None:
                copy()
            else:
                f.when(inside, copy, lambda: self._nothing(f, place))

        f.loop(0, self.scratch, f.target.bytes, clear)
        f.loop(f["begin"], f["end"], 1, line)

    def _copy(self, f: Function, start: Value) -> None:
        """The line of an image behind its padding, which stays 0."""
        axis, unit = self.columns, self.runs.unit
        whole, rest = divmod(max(0, min(axis.size, self._span - axis.begin)) * unit, f.lanes)
        for r in range(self.runs.count):
            source, target = (
                f.at(start, r * self.runs.stride),
                f.at(f["scratch"], r * self._pitch + axis.begin * unit * 4),
            )

            def vector(at: Int, source: Value = source, target: Value = target, count: int = f.lanes) -> None:
                f.store(f.load(source, at, count), target, at, count)

            if whole:
                f.loop(0, whole * f.target.bytes, f.target.bytes, lambda at, _, vector=vector: vector(at))
            if rest:
                vector(whole * f.target.bytes, count=rest)

    def _windows(self, f: Function, line: Value) -> None:
        def column(index: Value, _: list[Value]) -> None:
            target = f.at(line, f.multiply(index, tiles.BYTES))
            source = f.at(f["scratch"], f.multiply(index, self.columns.step * self.runs.unit * 4))
            for start, place, count in self.runs.vectors(self._pitch):
                rest = tiles.DEPTH - place // bfloat16.BYTES  # of the row
                bfloat16.store_lanes(f, read_rounded(f, source, start, 4, count), target, place, rest)

        f.loop(0, self.columns.count, 1, column)

    def _nothing(self, f: Function, place: Value) -> None:
        """A line of zeros."""

        def part(at: Value, _: list[Value]) -> None:
            bfloat16.store(f, bfloat16.zeros(f), place, at)

        f.loop(0, self.columns.count * tiles.BYTES, f.lanes * bfloat16.BYTES, part)
