"""Copies of data as bf16, laid as tile products read them: padded, 32 channels of one position a row of a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, indices
from irload.plan.backends.llvm.operands import read_rounded
from irload.plan.backends.llvm.spatial import Spatial
from irload.record import record

PAGE = 4096
"""Bytes after which addresses fall into the same lines of the first level of the cache."""
APART = 1024
"""Bytes that a block reads of each chunk."""


@record()
class Strided:
    """An axis of the data, with the bytes between neighbours."""

    size: int
    stride: int


@record()
class ToBf16(Kernel):
    """Data, stored as `element` says → [front…, chunk, back…, phases…, positions…, 32] in bf16. Pointers: from, to.

    A chunk is 32 of `depth` channels, which lie `channel` bytes apart; the last one is filled up with zeros. Phases and
    positions are those of the `spatial` axes; those beyond the data are zeros.
    """

    front: tuple[Strided, ...]
    depth: int
    channel: int
    back: tuple[Strided, ...]
    spatial: tuple[Spatial, ...]
    element: str = F32

    prepares: ClassVar[bool] = True

    @property
    def code(self) -> ToBf16:
        front, back = ((replace(s, size=0) if k == 0 else s for k, s in enumerate(n)) for n in (self.front, self.back))
        return replace(self, front=tuple(front), back=tuple(back))

    @property
    def numbers(self) -> tuple[int, ...]:
        return self._lines, self._pitch

    @property
    def chunks(self) -> int:
        """The rows of tiles that hold the channels of one position."""
        return -(-self.depth // tiles.DEPTH)

    @property
    def nbytes(self) -> int:
        """The bytes of the copy."""
        return prod(s.size for s in self.front) * self.chunks * self._pitch

    @property
    def _pitch(self) -> int:
        """The bytes between chunks, such that the same positions of several lie in different lines of the cache."""
        dense = prod(s.size for s in self.back) * prod(s.phases * s.length for s in self.spatial) * tiles.BYTES
        compete = self.chunks > 1 and (dense + APART) % PAGE < 2 * APART
        return dense + (APART - dense) % PAGE if compete else dense

    @property
    def _lines(self) -> int:
        """The lines of a chunk."""
        return prod(s.size for s in self.back) * prod(s.phases * s.length for s in self.spatial) // self._length

    @property
    def _length(self) -> int:
        """The positions of a line."""
        return self.spatial[-1].length

    @property
    def count(self) -> int:
        return prod(s.size for s in self.front) * self.chunks * self._lines

    @property
    def cycles(self) -> float:
        return self.count * self._length * (8 if self.channel == SIZES[self.element] else 4 * tiles.DEPTH)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours in the copy, along the axes front, chunk, back, phases and positions."""
        outer = [s.size for s in self.front] + [self.chunks]
        inner = [s.size for s in self.back] + [s.phases for s in self.spatial] + [s.length for s in self.spatial]
        return (
            *(prod(outer[k + 1 :]) * self._pitch for k in range(len(outer))),
            *(prod(inner[k + 1 :]) * tiles.BYTES for k in range(len(inner))),
        )

    def write(self, function: Function) -> None:
        f = function
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))
        lines, pitch = (f.load_int(f["arguments"], 8 * k) for k in (2, 3))
        *outer, last = self.spatial

        def line(index: Value, _: list[Value]) -> None:
            block, rest = f.divmod(index, lines)
            place = f.multiply(rest, self._length * tiles.BYTES)
            place = f.at(target, f.add(place, f.multiply(block, pitch)))
            rest, at_outer = digits(f, rest, [s.length for s in outer])
            rest, phases = digits(f, rest, [s.phases for s in self.spatial])
            back = indices(f, rest, [s.size for s in self.back])
            rest, (chunk,) = digits(f, block, [self.chunks])
            front = indices(f, rest, [s.size for s in self.front])
            offset: Int = f.multiply(chunk, tiles.DEPTH * self.channel)
            for axis, at in zip((*self.front, *self.back), (*front, *back), strict=True):
                offset = f.add(offset, f.multiply(at, axis.stride))
            outer_offset, inside = positions(f, outer, at_outer, phases[:-1])
            offset = f.add(offset, outer_offset)
            start = f.add(f.multiply(phases[-1], last.apart), -last.begin)
            first, stop = _within(f, last, start)
            offset = f.add(offset, f.multiply(start, last.stride))

            def copy() -> None:
                self._fill(f, place, 0, first)
                self._copy(f, f.at(source, offset), place, chunk, (first, stop))
                self._fill(f, place, stop, self._length)

            if inside is None:
                copy()
            else:
                f.when(inside, copy, lambda: self._fill(f, place, 0, self._length))

        f.loop(f["begin"], f["end"], 1, line)

    def _fill(self, f: Function, place: Value, first: Int, stop: Int) -> None:
        """Zeros at positions of a line."""
        if first is stop or first == stop:
            return

        def row(position: Value, _: list[Value]) -> None:
            for part in range(tiles.DEPTH // f.lanes):
                at = f.add(f.multiply(position, tiles.BYTES), part * f.lanes * bfloat16.BYTES)
                bfloat16.store(f, bfloat16.zeros(f), place, at)

        f.loop(first, stop, 1, row)

    def _copy(self, f: Function, start: Value, place: Value, chunk: Int, bounds: tuple[Int, Int]) -> None:
        """The chunk of a line, at positions whose data exist."""
        axis = self.spatial[-1]
        rest = self.depth - (self.chunks - 1) * tiles.DEPTH

        def channels(count: int) -> Callable[[], None]:
            def row(position: Value, _: list[Value]) -> None:
                source = f.at(start, f.multiply(position, axis.step * axis.stride))
                target = f.at(place, f.multiply(position, tiles.BYTES))
                for part in range(tiles.DEPTH // f.lanes):
                    first = part * f.lanes
                    value = read_rounded(f, source, first * self.channel, self.channel, count - first, self.element)
                    bfloat16.store(f, value, target, first * bfloat16.BYTES)

            def rows() -> None:
                f.loop(*bounds, 1, row)

            return rows

        if rest < tiles.DEPTH and self.chunks > 1:
            f.when(f.compare("eq", chunk, self.chunks - 1), channels(rest), channels(tiles.DEPTH))
        else:
            channels(rest)()


def positions(
    f: Function, axes: Sequence[Spatial], at: Sequence[Int], phases: Sequence[Int]
) -> tuple[Int, Value | None]:
    """Where positions of phases lie in the data, and whether they are within it: None where they always are."""
    offset: Int = 0
    inside: Value | None = None
    for axis, position, phase in zip(axes, at, phases, strict=True):
        place = f.add(f.add(f.multiply(position, axis.step), f.multiply(phase, axis.apart)), -axis.begin)
        offset = f.add(offset, f.multiply(place, axis.stride))
        if axis.is_padded:
            for check in (f.compare("sge", place, 0), f.compare("slt", place, axis.size)):
                inside = check if inside is None else f.both(inside, check)
    return offset, inside


def _within(f: Function, axis: Spatial, start: Int) -> tuple[Int, Int]:
    """The positions first…stop−1 that have data, of a phase that begins at `start` in these."""
    if not axis.is_padded:
        return 0, axis.length

    def reached(position: int) -> Int:
        distance = f.maximum(f.subtract(position, start), 0)
        return f.minimum(f.divide(f.add(distance, axis.step - 1), axis.step), axis.length)

    return reached(0), reached(axis.size)
