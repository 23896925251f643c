"""The code of padded copies in bf16, for data of any sizes and strides."""

from __future__ import annotations

from typing import Any

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.builder import AnyBool, AnyInt, Bool, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.kernels.loops import digits, each_part, indices, offset
from irload.plan.backends.llvm.operands import load_lanes, read_rounded
from irload.record import record


@record()
class AxisCode:
    """A spatial axis as compiled: the steps between positions and between phases in the data, the number of phases."""

    step: int
    apart: int
    phases: int
    padded: bool


@record()
class _Axis:
    """The same with its numbers: the positions of the data and the bytes between them, padding, length of the copy."""

    code: AxisCode
    size: Int
    stride: Int
    begin: Int
    length: Int


@record()
class _Line:
    """The positions first…stop−1 of a line: data for position 0, bytes between positions and between channels."""

    start: Pointer
    step: AnyInt
    channel: AnyInt
    first: AnyInt
    stop: AnyInt


@record()
class ReorderCode(Standalone):
    """The code of a `Reorder`. `front`, `back`: the number of axes of each."""

    front: int
    back: int
    axes: tuple[AxisCode, ...]
    depth: int
    members: int
    element: str
    channels_contiguous: bool
    columns_contiguous: bool

    def write(self, function: Function) -> None:
        f, outer = function, self.front + self.back
        sizes = max(self.front - 1, 0) + max(self.back - 1, 0)
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))
        loaded = [f.load_int(f["arguments"], 16 + 8 * k) for k in range(3 + outer + sizes + 4 * len(self.axes))]
        lines, pitch, channel, *numbers = loaded
        strides, numbers = numbers[:outer], numbers[outer:]
        fronts, backs = [0, *numbers[: max(self.front - 1, 0)]], [0, *numbers[max(self.front - 1, 0) : sizes]]
        *spatial, last = [_Axis(a, *numbers[sizes + 4 * k : sizes + 4 * k + 4]) for k, a in enumerate(self.axes)]
        chunks = -(-self.depth // self.members)
        row, size = self.members * bfloat16.BYTES, SIZES[self.element]

        def line(index: Int, _: list[Any]) -> None:
            block, rest = divmod(index, lines)
            place = target + (rest * (last.length * row) + block * pitch)
            rest, at = digits(f, rest, [a.length for a in spatial])
            rest, phases = digits(f, rest, [a.phases for a in self.axes])
            block, chunk = divmod(block, chunks)
            outer = (*indices(f, block, fronts[: self.front]), *indices(f, rest, backs[: self.back]))
            start = source + (offset(f, strides, outer) + channel * self.members * chunk)
            inside: AnyBool = True
            for axis, position, phase in zip(spatial, at, phases[:-1], strict=True):
                found = position * axis.code.step + phase * axis.code.apart - axis.begin
                start = start + found * axis.stride
                if axis.code.padded:
                    inside = inside & (found >= 0) & (found < axis.size)
            begin = phases[-1] * last.code.apart - last.begin
            first, stop = _within(f, last, begin)
            step = last.stride * last.code.step
            data = _Line(start + begin * last.stride, step, size if self.channels_contiguous else channel, first, stop)

            def copy() -> None:
                self._clear(f, place, 0, first)
                self._copy(f, data, place, f.equal(chunk, chunks - 1))
                self._clear(f, place, stop, last.length)

            f.when(inside, copy, lambda: self._clear(f, place, 0, last.length))

        f.loop(f["begin"], f["end"], 1, line)

    def _clear(self, f: Function, place: Pointer, first: AnyInt, stop: AnyInt) -> None:
        """Write zeros to the positions first…stop−1 of a line."""
        if first is stop:
            return
        if self.members % f.lanes:
            start = place + first * (self.members * bfloat16.BYTES)
            zero = f.zero("i16")
            each_part(f, (stop - first) * self.members, f.lanes, lambda at, n: f.store(zero, start, at * 2, n))
            return

        def position(index: Int, _: list[Any]) -> None:
            for at in range(0, self.members, f.lanes):
                f.store(f.zero("i16"), place, (index * self.members + at) * bfloat16.BYTES)

        f.loop(first, stop, 1, position)

    def _copy(self, f: Function, line: _Line, place: Pointer, last: Bool) -> None:
        """Copy the positions of a line that are inside the data. `last`: of the last chunk."""
        if self.members % f.lanes:
            self._copy_image(f, line, place + line.first * (self.members * bfloat16.BYTES))
            return
        rest = (self.depth - 1) % self.members + 1

        def channels(count: int) -> None:
            def position(index: Int, _: list[Any]) -> None:
                start, row = line.start + index * line.step, place + index * (self.members * bfloat16.BYTES)
                for at in range(0, self.members, f.lanes):
                    value = read_rounded(f, start, at * line.channel, line.channel, count - at, self.element)
                    f.store(value, row, at * bfloat16.BYTES)

            f.loop(line.first, line.stop, 1, position)

        if rest < self.members < self.depth:
            f.when(last, lambda: channels(rest), lambda: channels(self.members))
        else:
            channels(rest)

    def _copy_image(self, f: Function, line: _Line, target: Pointer) -> None:
        """Copy columns of few channels, several at once."""
        size, columns = SIZES[self.element], line.stop - line.first
        source = line.start + line.first * line.step

        def load(at: AnyInt, count: AnyInt) -> Vec:
            whole = isinstance(count, int) and count == f.lanes
            return load_lanes(f, source, at, None if whole else count, self.element)

        def join(at: AnyInt, count: AnyInt) -> None:
            """Interleave the lines of all channels."""
            members = [f.zero("i16")] * self.members
            for c in range(self.depth):
                members[c] = bfloat16.rounded(f, load(at * size + line.channel * c, count))
            self._store(f, bfloat16.interleaved(f, members), target, at, count, f.lanes)

        def spread(at: AnyInt, count: AnyInt) -> None:
            """Pad the channels of each column."""
            loaded = load(at * (size * self.depth), count * self.depth)
            members = [(k // self.members, k % self.members) for k in range(f.lanes)]
            lanes = [k * self.depth + member if member < self.depth else f.lanes for k, member in members]
            value = bfloat16.rounded(f, f.shuffle(loaded, f.zero(), lanes))
            self._store(f, value, target, at, count, f.lanes // self.members)

        if self.columns_contiguous:
            each_part(f, columns, f.lanes, join)
        else:
            each_part(f, columns, f.lanes // self.members, spread)

    def _store(self, f: Function, value: Vec, target: Pointer, at: AnyInt, count: AnyInt, whole: int) -> None:
        """Store `count` columns, of which a vector has `whole`."""
        place = target + at * (self.members * bfloat16.BYTES)
        if isinstance(count, int) and count == whole:
            f.store(value, place)
            return
        for first in range(0, value.lanes, f.lanes):
            part = f.shuffle(value, value, range(first, first + f.lanes))
            f.store(part, place, first * bfloat16.BYTES, count * self.members - first)


def _within(f: Function, axis: _Axis, begin: AnyInt) -> tuple[AnyInt, AnyInt]:
    """The positions first…stop−1 of a phase, which begins at `begin` in the data, that are inside the data."""
    if not axis.code.padded:
        return 0, axis.length

    def reached(position: AnyInt) -> AnyInt:
        distance = f.maximum(position - begin, 0)
        return f.minimum((distance + (axis.code.step - 1)) // axis.code.step, axis.length)

    return reached(0), reached(axis.size)
