"""Padded copies of data in bf16, in the layouts that contractions read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY, Axis, any_sizes
from irload.plan.backends.llvm.builder import AnyBool, AnyInt, Bool, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, each_part, either, indices, offset
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.operands import load_lanes, read_rounded
from irload.plan.backends.llvm.target import AMX
from irload.plan.backends.llvm.tuning import REORDERED
from irload.record import record


@record()
class Reorder(Kernel):
    """Copies data to [front…, chunk, back…, phases…, positions…, member] in bf16. Pointers: from, to.

    A chunk is `members` of the `depth` channels, which have a stride of `channel` bytes; channels that pad the last
    chunk are 0. The `spatial` axes have phases and positions; positions outside the data are 0. `element`: the type of
    the data.

    A chunk is a row of a tile, or all channels of an image with few channels, padded to a power of 2. In the second
    case, either the channels or the columns of the image are contiguous, and there is one phase.

    The code reads sizes, strides and padding. Compiled in: the number of axes, the channels, whether channels or the
    columns of an image are contiguous, and for each spatial axis its step, its phases and whether it is padded.
    """

    front: tuple[Axis, ...]
    depth: int
    channel: int
    back: tuple[Axis, ...]
    spatial: tuple[CopiedAxis, ...]
    element: str = F32
    members: int = tiles.DEPTH

    prepares: ClassVar[bool] = True

    @property
    def code(self) -> Reorder:
        size = SIZES[self.element]
        spatial = [axis.key for axis in self.spatial]
        if self.columns_contiguous:
            spatial[-1] = replace(spatial[-1], stride=size)
        channel = size if self.channel == size else ANY
        front, back = any_sizes(self.front), any_sizes(self.back)
        return replace(self, front=front, channel=channel, back=back, spatial=tuple(spatial))

    @property
    def numbers(self) -> tuple[int, ...]:
        plain = replace(self, spatial=tuple(axis.plain for axis in self.spatial))
        return (self._lines, self._pitch, *unknown(plain, self.code))

    @property
    def columns_contiguous(self) -> bool:
        """True for planar images of few channels: columns are contiguous, instead of the channels of a column."""
        return self.spatial[-1].stride == SIZES[self.element] and self.members < tiles.DEPTH

    @property
    def chunks(self) -> int:
        """The chunks of the channels."""
        return -(-self.depth // self.members)

    @property
    def nbytes(self) -> int:
        """The bytes of the copy."""
        return prod(s.size for s in self.front) * self.chunks * self._pitch

    @property
    def _inner(self) -> list[int]:
        """The sizes of the axes of a chunk."""
        return [*(s.size for s in self.back), *(s.phases for s in self.spatial), *(s.length for s in self.spatial)]

    @property
    def row(self) -> int:
        """The bytes of a position."""
        return self.members * bfloat16.BYTES

    @property
    def _pitch(self) -> int:
        """The bytes between chunks, padded so that the chunks of a position are in different cache sets."""
        dense = prod(self._inner) * self.row
        compete = self.chunks > 1 and (dense + REORDERED) % AMX.page < 2 * REORDERED
        return dense + (REORDERED - dense) % AMX.page if compete else dense

    @property
    def _lines(self) -> int:
        """The lines of a chunk along the last spatial axis."""
        return prod(self._inner[:-1])

    @property
    def count(self) -> int:
        return prod(s.size for s in self.front) * self.chunks * self._lines

    @property
    def cycles(self) -> float:
        if self.members < tiles.DEPTH:
            each = (2 + self.members) / 4
        else:
            each = 8 if self.channel == SIZES[self.element] else 4 * tiles.DEPTH
        return self.count * self._inner[-1] * each

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours in the copy, along the axes front, chunk, back, phases and positions."""
        outer, inner = [*(s.size for s in self.front), self.chunks], self._inner
        return (
            *(prod(outer[k + 1 :]) * self._pitch for k in range(len(outer))),
            *(prod(inner[k + 1 :]) * self.row for k in range(len(inner))),
        )

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        (source, target), (lines, pitch) = arguments.pointers(2), arguments.integers(2)
        given = arguments.filled(self)
        front, back, channel, (*outer, last) = given.front, given.back, given.channel, given.spatial
        for index in f.range(f["begin"], f["end"]):
            block, rest = divmod(index, lines)
            line = target + (rest * (last.length * self.row) + block * pitch)
            rest, at = digits(rest, [a.length for a in outer])
            rest, phases = digits(rest, [a.phases for a in (*outer, last)])
            block, chunk = divmod(block, self.chunks)
            indexed = [*indices(block, [a.size for a in front]), *indices(rest, [a.size for a in back])]
            start = source + offset([s for axis in (*front, *back) for s in axis.strides], indexed)
            start = start + channel * self.members * chunk
            inside: AnyBool = True
            for axis, position, phase in zip(outer, at, phases, strict=False):
                element = position * axis.windows.stride + phase * axis.apart - axis.windows.begin
                start = start + element * axis.stride
                if axis.is_padded:
                    inside = inside & (element >= 0) & (element < axis.windows.size)
            copy = _Line(f, self, channel, *_positions(f, last, start, phases[-1]))
            with f.when(inside):
                copy.clear(line, 0, copy.first)
                copy.copy(line, f.equal(chunk, self.chunks - 1))
                copy.clear(line, copy.stop, last.length)
            with f.otherwise():
                copy.clear(line, 0, last.length)


def _positions(f: Function, axis: CopiedAxis, start: Pointer, phase: AnyInt) -> tuple[Pointer, AnyInt, AnyInt, AnyInt]:
    """The positions of a phase that are inside the data, which starts at `start`: the last fields of `_Line`."""
    begin, step = phase * axis.apart - axis.windows.begin, axis.windows.stride

    def reached(position: AnyInt) -> AnyInt:
        distance = f.maximum(position - begin, 0)
        return f.minimum((distance + (step - 1)) // step, axis.length)

    first, stop = (reached(0), reached(axis.windows.size)) if axis.is_padded else (0, axis.length)
    return start + begin * axis.stride, axis.stride * step, first, stop


@record(eq=False)
class _Line:
    """Copies a line of data: zeros for padding, the positions first…stop−1, zeros for padding.

    `kernel`: the key of the code; `start`: the data of position 0; `step`, `channel`: strides in bytes.
    """

    f: Function
    kernel: Reorder
    channel: AnyInt
    start: Pointer
    step: AnyInt
    first: AnyInt
    stop: AnyInt

    def clear(self, target: Pointer, first: AnyInt, stop: AnyInt) -> None:
        """Write zeros to the positions first…stop−1 of a line."""
        f, kernel = self.f, self.kernel
        if first is stop:
            return
        if kernel.members % f.lanes:
            start = target + first * kernel.row
            zero = f.zero("i16")
            for at, n in each_part(f, (stop - first) * kernel.members, f.lanes):
                f.store(zero, start, at * 2, n)
            return
        for index in f.range(first, stop):
            for at in range(0, kernel.members, f.lanes):
                f.store(f.zero("i16"), target, (index * kernel.members + at) * bfloat16.BYTES)

    def copy(self, target: Pointer, last: Bool) -> None:
        """Copy the positions of a line that are inside the data. `last`: true for lines of the last chunk."""
        f, kernel = self.f, self.kernel
        if kernel.members % f.lanes:
            self._copy_image(target + self.first * kernel.row)
            return
        rest = (kernel.depth - 1) % kernel.members + 1
        for count in either(f, last, rest, kernel.members if kernel.members < kernel.depth else rest):
            for index in f.range(self.first, self.stop):
                start, row = self.start + index * self.step, target + index * kernel.row
                for at in range(0, kernel.members, f.lanes):
                    value = read_rounded(f, start, at * self.channel, self.channel, count - at, kernel.element)
                    f.store(value, row, at * bfloat16.BYTES)

    def _copy_image(self, target: Pointer) -> None:
        """Copy columns of few channels, a vector at a time."""
        f, kernel, columns = self.f, self.kernel, self.stop - self.first
        size, source = SIZES[kernel.element], self.start + self.first * self.step

        def load(at: AnyInt, count: AnyInt) -> Vec:
            whole = isinstance(count, int) and count == f.lanes
            return load_lanes(f, source, at, None if whole else count, kernel.element)

        def join(at: AnyInt, count: AnyInt) -> Vec:
            """Interleave the lines of all channels."""
            members = [f.zero("i16")] * kernel.members
            for c in range(kernel.depth):
                members[c] = bfloat16.rounded(f, load(at * size + self.channel * c, count))
            return bfloat16.interleaved(f, members)

        def spread(at: AnyInt, count: AnyInt) -> Vec:
            """Pad the channels of each column."""
            loaded = load(at * (size * kernel.depth), count * kernel.depth)
            members = [(k // kernel.members, k % kernel.members) for k in range(f.lanes)]
            lanes = [k * kernel.depth + member if member < kernel.depth else f.lanes for k, member in members]
            return bfloat16.rounded(f, f.shuffle(loaded, f.zero(), lanes))

        whole, value = (f.lanes, join) if kernel.columns_contiguous else (f.lanes // kernel.members, spread)
        for at, count in each_part(f, columns, whole):
            self._store(value(at, count), target, at, count, whole)

    def _store(self, value: Vec, target: Pointer, at: AnyInt, count: AnyInt, whole: int) -> None:
        """Store `count` columns, of which a vector has `whole`."""
        f, kernel = self.f, self.kernel
        address = target + at * kernel.row
        if isinstance(count, int) and count == whole:
            f.store(value, address)
            return
        for first in range(0, value.lanes, f.lanes):
            part = f.shuffle(value, value, range(first, first + f.lanes))
            f.store(part, address, first * bfloat16.BYTES, count * kernel.members - first)


def in_chunks(shape: Sequence[int], strides: Sequence[int] | None = None) -> Reorder:
    """The copy of f32 values [batch…, row, channel] to [chunk, batch…, row, member]. `strides`: of the values."""
    *outer, row, channel = strides or (0,) * len(shape)
    back = tuple(Axis(n, (stride,)) for n, stride in zip(shape, outer, strict=False))
    return Reorder((), shape[-1], channel, back, (CopiedAxis(WindowAxis(shape[-2], shape[-2]), row),))
