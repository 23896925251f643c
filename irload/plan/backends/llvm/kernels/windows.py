"""Windows along the spatial axes of maps: their keys, the layout of copies, and blocks of the windows of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from irload.ops.sliding import WindowAxis
from irload.ops.windows import dilated
from irload.plan.backends.llvm.builder import AnyInt, Function
from irload.plan.backends.llvm.kernels.loops import either
from irload.record import record

FARTHEST = 1 << 31
"""The maximum span of the windows of an axis, in elements, so that offsets do not overflow."""


def is_near(axis: WindowAxis) -> bool:
    """True if the offsets of all elements of the windows are below FARTHEST."""
    return axis.reach + abs(axis.begin) + axis.size < FARTHEST


def axis_key(axis: WindowAxis) -> WindowAxis:
    """The axis in the key of code: equal for axes with equal windows that are either all padded or all unpadded."""
    return replace(axis, size=0 if axis.is_padded else dilated(axis.kernel, axis.dilation) - axis.begin, count=1)


def emit_taps(f: Function, axis: WindowAxis, position: AnyInt, size: AnyInt) -> tuple[AnyInt, AnyInt]:
    """Emit `WindowAxis.taps`: the range of taps inside the data, whose end may precede its begin."""
    return clipped_taps(f, axis, position, size) if axis.is_padded else (0, axis.kernel)


def clipped_taps(f: Function, axis: WindowAxis, position: AnyInt, size: AnyInt) -> tuple[AnyInt, AnyInt]:
    """Emit the range of taps inside the data for an axis with padding. Does not use `axis.size` and `axis.count`."""
    start = position * axis.stride - axis.begin
    first, last = f.maximum(0 - start, 0), f.maximum(size - start, 0)
    if axis.dilation > 1:
        first, last = ((n + (axis.dilation - 1)) // axis.dilation for n in (first, last))
    return f.minimum(first, axis.kernel), f.minimum(last, axis.kernel)


@record()
class CopiedAxis:
    """An axis of a copy of maps in which each tap of the windows reads contiguous positions for consecutive outputs.

    `stride`: the bytes between positions of the data. In the copy, positions that differ by a multiple of the windows'
    stride are contiguous and form a phase. The copy omits the last phases if no tap reads them.

    `by_tap`: the copy has one phase per tap, with the positions that the tap reads. Then the outputs of consecutive
    lines are contiguous, too.
    """

    windows: WindowAxis
    stride: int
    by_tap: bool = False

    @property
    def phases(self) -> int:
        """The phases of the copy."""
        taps = self.windows.kernel
        return taps if self.by_tap else max(k * self.windows.dilation % self.windows.stride for k in range(taps)) + 1

    @property
    def length(self) -> int:
        """The positions of each phase."""
        windows = self.windows
        between = 0 if self.by_tap else (windows.kernel - 1) * windows.dilation // windows.stride
        return between + windows.count

    @property
    def apart(self) -> int:
        """The distance between phases, in positions of the data."""
        return self.windows.dilation if self.by_tap else 1

    @property
    def key(self) -> CopiedAxis:
        """The axis in the key of code: equal for all axes with the same steps, phases and `is_padded`."""
        size = 0 if self.is_padded else (self.phases - 1) * self.apart + 1
        return CopiedAxis(WindowAxis(size, 1, self.phases, self.windows.stride, self.apart), 0, by_tap=True)

    @property
    def is_padded(self) -> bool:
        """True if some positions of the copy are padding."""
        last = (self.length - 1) * self.windows.stride + (self.phases - 1) * self.apart
        return self.windows.begin > 0 or last - self.windows.begin >= self.windows.size

    def tap(self, k: int) -> tuple[int, int]:
        """The phase that tap k reads, and its position there for output 0."""
        if self.by_tap:
            return k, 0
        position, phase = divmod(k * self.windows.dilation, self.windows.stride)
        return phase, position


WindowAxes = tuple[WindowAxis, WindowAxis, WindowAxis]
"""Depth, height and width."""


def emit_blocks(
    f: Function, axis: WindowAxis, size: AnyInt, count: AnyInt, windows: int
) -> Iterator[tuple[AnyInt, bool]]:
    """The first window of each block of `windows`, and whether some elements or windows may be outside the map.

    The body is emitted for both cases.
    """
    first, stop = whole_windows(f, axis, size, count)
    for at in f.range(0, count, windows):
        inside = at + windows <= stop
        for at_end in either(f, (at >= first) & inside if first else inside, False, True):
            yield at, at_end


def whole_windows(f: Function, axis: WindowAxis, size: AnyInt, count: AnyInt) -> tuple[int, AnyInt]:
    """Emit the range of windows without taps outside the map; its end may precede its begin."""
    span = dilated(axis.kernel, axis.dilation) - axis.begin
    stop = f.minimum(f.maximum(size - (span - axis.stride), 0) // axis.stride, count)
    return max(-(-axis.begin // axis.stride), 0), stop


def emit_ends(
    f: Function, axis: WindowAxis, at: AnyInt, size: AnyInt, count: AnyInt, windows: int
) -> dict[str, AnyInt]:
    """Emit the arguments of a block at an end of a row.

    `windows`: the number of windows on the map. Elements `first`…`last` − 1 of the block are on the map.
    """
    begin = at * axis.stride - axis.begin
    count_left = f.minimum(count - at, windows)
    last = f.minimum(size - begin, (count_left - 1) * axis.stride + dilated(axis.kernel, axis.dilation))
    return {"windows": count_left, "first": f.maximum(0 - begin, 0), "last": last, "window": at, "size": size}


def readers(axis: WindowAxis, windows: int) -> dict[int, list[tuple[int, int]]]:
    """For each element that neighbouring windows read, in memory order: the pairs (window, tap) that read it."""
    pairs: dict[int, list[tuple[int, int]]] = {}
    for window, tap in product(range(windows), range(axis.kernel)):
        pairs.setdefault(window * axis.stride + tap * axis.dilation, []).append((window, tap))
    return dict(sorted(pairs.items()))


def five(strides: Sequence[int]) -> tuple[int, ...]:
    """The strides of maps [N,C,X…], extended to [N,C,D,H,W]."""
    return (*strides[:2], *(0,) * (5 - len(strides)), *strides[2:])


def three_axes(windows: Sequence[WindowAxis]) -> WindowAxes:
    """The windows along depth, height and width. A missing axis has one window with one tap."""
    depth, height, width = (*(WindowAxis(1, 1),) * (3 - len(windows)), *windows)
    return depth, height, width
