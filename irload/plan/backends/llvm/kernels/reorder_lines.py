"""The code that copies a line of data in bf16: zeros for padding, positions inside the data, zeros for padding."""

from __future__ import annotations

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.builder import AnyInt, Bool, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.kernels.loops import each_part, either
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.operands import load_lanes, read_rounded
from irload.record import record


@record()
class Line:
    """The positions first…stop−1 of a line. `start`: the data of position 0; `step`, `channel`: strides in bytes."""

    start: Pointer
    step: AnyInt
    channel: AnyInt
    first: AnyInt
    stop: AnyInt


@record()
class AxisNumbers:
    """A copied axis in the key of the code, and its run-time arguments: size, stride, padding, length of a phase."""

    axis: CopiedAxis
    size: AnyInt
    stride: AnyInt
    begin: AnyInt
    length: AnyInt

    def line(self, f: Function, start: Pointer, phase: AnyInt, channel: AnyInt) -> Line:
        """The positions of a phase that are inside the data, which starts at `start`."""
        begin, step = phase * self.axis.apart - self.begin, self.axis.windows.stride

        def reached(position: AnyInt) -> AnyInt:
            distance = f.maximum(position - begin, 0)
            return f.minimum((distance + (step - 1)) // step, self.length)

        first, stop = (reached(0), reached(self.size)) if self.axis.is_padded else (0, self.length)
        return Line(start + begin * self.stride, self.stride * step, channel, first, stop)


@record(eq=False)
class LineCopy:
    """Copies lines of `depth` channels in chunks of `members`. `element`: the type of the data."""

    f: Function
    depth: int
    members: int
    element: str
    columns_contiguous: bool

    def clear(self, target: Pointer, first: AnyInt, stop: AnyInt) -> None:
        """Write zeros to the positions first…stop−1 of a line."""
        f = self.f
        if first is stop:
            return
        if self.members % f.lanes:
            start = target + first * (self.members * bfloat16.BYTES)
            zero = f.zero("i16")
            for at, n in each_part(f, (stop - first) * self.members, f.lanes):
                f.store(zero, start, at * 2, n)
            return
        for index in f.range(first, stop):
            for at in range(0, self.members, f.lanes):
                f.store(f.zero("i16"), target, (index * self.members + at) * bfloat16.BYTES)

    def copy(self, line: Line, target: Pointer, last: Bool) -> None:
        """Copy the positions of a line that are inside the data. `last`: true for lines of the last chunk."""
        f = self.f
        if self.members % f.lanes:
            self._copy_image(line, target + line.first * (self.members * bfloat16.BYTES))
            return
        rest = (self.depth - 1) % self.members + 1
        for count in either(f, last, rest, self.members if self.members < self.depth else rest):
            self._copy_channels(line, target, count)

    def _copy_channels(self, line: Line, target: Pointer, count: int) -> None:
        """Copy `count` channels of each position."""
        f = self.f
        for index in f.range(line.first, line.stop):
            start, row = line.start + index * line.step, target + index * (self.members * bfloat16.BYTES)
            for at in range(0, self.members, f.lanes):
                value = read_rounded(f, start, at * line.channel, line.channel, count - at, self.element)
                f.store(value, row, at * bfloat16.BYTES)

    def _copy_image(self, line: Line, target: Pointer) -> None:
        """Copy columns of few channels, a vector at a time."""
        f, size, columns = self.f, SIZES[self.element], line.stop - line.first
        source = line.start + line.first * line.step

        def load(at: AnyInt, count: AnyInt) -> Vec:
            whole = isinstance(count, int) and count == f.lanes
            return load_lanes(f, source, at, None if whole else count, self.element)

        def join(at: AnyInt, count: AnyInt) -> Vec:
            """Interleave the lines of all channels."""
            members = [f.zero("i16")] * self.members
            for c in range(self.depth):
                members[c] = bfloat16.rounded(f, load(at * size + line.channel * c, count))
            return bfloat16.interleaved(f, members)

        def spread(at: AnyInt, count: AnyInt) -> Vec:
            """Pad the channels of each column."""
            loaded = load(at * (size * self.depth), count * self.depth)
            members = [(k // self.members, k % self.members) for k in range(f.lanes)]
            lanes = [k * self.depth + member if member < self.depth else f.lanes for k, member in members]
            return bfloat16.rounded(f, f.shuffle(loaded, f.zero(), lanes))

        whole, value = (f.lanes, join) if self.columns_contiguous else (f.lanes // self.members, spread)
        for at, count in each_part(f, columns, whole):
            self._store(value(at, count), target, at, count, whole)

    def _store(self, value: Vec, target: Pointer, at: AnyInt, count: AnyInt, whole: int) -> None:
        """Store `count` columns, of which a vector has `whole`."""
        f = self.f
        address = target + at * (self.members * bfloat16.BYTES)
        if isinstance(count, int) and count == whole:
            f.store(value, address)
            return
        for first in range(0, value.lanes, f.lanes):
            part = f.shuffle(value, value, range(first, first + f.lanes))
            f.store(part, address, first * bfloat16.BYTES, count * self.members - first)
