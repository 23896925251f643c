"""Windows along the spatial axes of maps: keys of code, copies for them, and the loops over the windows of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.builder import AnyInt, Function
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.record import record

FARTHEST = 1 << 31
"""Elements that the windows of an axis may span at most, so that offsets do not overflow."""


def is_near(axis: WindowAxis) -> bool:
    """True if offsets within all windows fit into the address arithmetic."""
    return axis.reach + abs(axis.begin) + axis.size < FARTHEST


def is_fixed(axis: WindowAxis) -> bool:
    """True if fewer than two windows are in the interior: code for the axis has its size and count compiled in."""
    first, stop = axis.interior
    return stop - first < 2


def axis_key(axis: WindowAxis) -> WindowAxis:
    """The axis that stands for all axes of the same borders: at most two interior windows, no unread end.

    Code for it reads `size` and `count` at run time, except on axes for which `is_fixed` is true.
    """
    if is_fixed(axis):
        return axis
    first, stop = axis.interior
    fewer = stop - first - 2
    size = min(axis.size, axis.reach - axis.begin) if stop == axis.count else axis.size
    return replace(axis, size=size - fewer * axis.stride, count=axis.count - fewer)


def edges(axis: WindowAxis) -> int:
    """The number of windows outside the interior."""
    first, stop = axis.interior
    return axis.count - (stop - first)


def emit_taps(f: Function, axis: WindowAxis, position: AnyInt, size: AnyInt) -> tuple[AnyInt, AnyInt]:
    """Emit `WindowAxis.taps`: the first tap, and the one after the last, which may precede the first."""
    return clipped_taps(f, axis, position, size) if axis.is_padded else (0, axis.kernel)


def clipped_taps(f: Function, axis: WindowAxis, position: AnyInt, size: AnyInt) -> tuple[AnyInt, AnyInt]:
    """Emit the same for an axis with padding, without its `size` and `count`."""
    start = position * axis.stride - axis.begin
    first, last = f.maximum(0 - start, 0), f.maximum(size - start, 0)
    if axis.dilation > 1:
        first, last = ((n + (axis.dilation - 1)) // axis.dilation for n in (first, last))
    return f.minimum(first, axis.kernel), f.minimum(last, axis.kernel)


@record()
class CopiedAxis:
    """An axis of maps in a copy where each tap of some windows reads contiguous positions.

    `stride`: the bytes between positions of the data. In the copy, positions that differ by a multiple of the windows'
    stride are contiguous and form a phase. The copy omits the last phases if no tap reads them.

    `by_tap`: the copy has one phase for each tap, with the positions that it reads. Then outputs of consecutive lines
    are contiguous, too.
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
        """The axis that stands for all axes of the same steps and phases, padded or not."""
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


def in_blocks(f: Function, axis: WindowAxis, count: AnyInt, size: int) -> Iterator[tuple[AnyInt, list[range]]]:
    """The first window of each block of windows along an axis, and the taps of its windows.

    A block has at most `size` windows, a power of two; `count` is the number of windows, known at run time unless
    `is_fixed`. Windows of the interior that do not fill a block are divided into powers of two: the largest one joins
    the left border, and the smallest the right one.
    """
    inner, half = range(*axis.interior), size // 2

    def pieces(at: AnyInt, windows: range) -> Iterator[tuple[AnyInt, list[range]]]:
        for k in range(0, len(windows), size):
            yield at + k, [axis.taps(window) for window in windows[k : k + size]]

    if is_fixed(axis):
        yield from pieces(0, range(axis.count))
        return
    start, stop = max(inner.start - half, 0), min(inner.stop + half, axis.count)
    left = [axis.taps(k) for k in range(start, inner.start)]
    right = [axis.taps(k) for k in range(inner.stop, stop)]
    yield from pieces(0, range(start))
    end = count - (axis.count - inner.stop)
    rest = (end - inner.start) % size

    def leading(power: int) -> Iterator[tuple[AnyInt, list[range]]]:
        if power:
            with f.when(rest >= power):
                yield start, [*left, *[range(axis.kernel)] * power]
            with f.otherwise():
                yield from leading(power // 2)
        elif left:
            yield start, left

    yield from leading(half)
    taken: AnyInt = 0
    for power in powers(half):
        taken = f.maximum(taken, f.minimum(rest // power, 1) * power)
    rest = rest - taken
    at = whole = end - rest
    for first in repeat(f, inner.start + taken, whole, size):
        yield first, [range(axis.kernel)] * size
    for power in powers(half // 2):
        behind, taps = rest % power, [range(axis.kernel)] * power
        with f.when(rest >= power):
            with f.when(f.equal(behind, 0) if power > 1 else True):
                yield at, [*taps, *right]
            with f.otherwise():
                yield at, taps
        at, rest = at + (rest - behind), behind
    if right:
        with f.when(f.equal(whole, end)):
            yield end, right
    yield from pieces(end + (stop - inner.stop), range(stop, axis.count))


def powers(largest: int) -> list[int]:
    """The powers of two from `largest`, which is one of them or 0, down to 1."""
    return [largest, *powers(largest // 2)] if largest else []


def readers(axis: WindowAxis, taps: Sequence[range]) -> dict[int, list[tuple[int, int]]]:
    """For each element that neighbouring windows read: the pairs (window, tap) that read it."""
    pairs: dict[int, list[tuple[int, int]]] = {}
    for window, valid in enumerate(taps):
        for tap in valid:
            pairs.setdefault(window * axis.stride + tap * axis.dilation, []).append((window, tap))
    return pairs


def five(strides: Sequence[int]) -> tuple[int, ...]:
    """Strides of maps [N,C,X…] with three spatial axes."""
    return (*strides[:2], *(0,) * (5 - len(strides)), *strides[2:])


def three_axes(windows: Sequence[WindowAxis]) -> WindowAxes:
    """The windows along depth, height and width: one tap for a missing axis."""
    depth, height, width = (*(WindowAxis(1, 1),) * (3 - len(windows)), *windows)
    return depth, height, width
