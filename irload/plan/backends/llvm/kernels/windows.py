"""Windows along the spatial axes of maps: which of their elements, the taps, lie in the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm.builder import Function, Int
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.ir.steps import Conv, Pool
from irload.record import record

FARTHEST = 1 << 31
"""Elements that all windows of an axis may span, so that no product of addresses overflows."""


@record()
class WindowAxis:
    """`count` windows of `kernel` taps over `size` elements. The first window starts `begin` elements before them."""

    size: int
    count: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    begin: int = 0

    def taps(self, position: int) -> range:
        """The taps of a window that lie in the data."""
        start = position * self.stride - self.begin
        first = min(max(0, -(start // self.dilation)), self.kernel)
        return range(first, max(first, min(self.kernel, (self.size - 1 - start) // self.dilation + 1)))

    @property
    def interior(self) -> range:
        """The windows of which all taps lie in the data."""
        reach = self.size - 1 - (self.kernel - 1) * self.dilation + self.begin
        first = min(-(-max(self.begin, 0) // self.stride), self.count)
        return range(first, max(first, min(self.count, reach // self.stride + 1)))

    @property
    def whole(self) -> tuple[int, int] | None:
        """The taps of all windows, where none lacks any."""
        return (0, self.kernel) if self.interior == range(self.count) else None

    def emit_taps(self, f: Function, position: Int) -> tuple[Int, Int, Int]:
        """The same as `taps`: the first tap and the one after the last; and where in the data the window starts."""
        start = f.subtract(f.multiply(position, self.stride), self.begin)
        if self.whole:
            return *self.whole, start
        before = f.maximum(f.subtract(0, start), 0)
        first = f.minimum(f.divide(f.add(before, self.dilation - 1), self.dilation), self.kernel)
        rest = f.maximum(f.subtract(self.size - 1 + self.dilation, start), 0)
        last = f.minimum(f.divide(rest, self.dilation), self.kernel)
        return first, f.maximum(first, last), start

    @property
    def is_near(self) -> bool:
        """True where all that the windows span can be counted."""
        span = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return span + abs(self.begin) + self.size < FARTHEST


def in_blocks(f: Function, axis: WindowAxis, size: int, block: Callable[[Int, list[range]], None]) -> None:
    """`block(position, taps of its windows)` for blocks of windows: first ones, those that lack no tap, last ones."""
    left = min(-(-axis.interior.start // size) * size, axis.count)
    whole = left + max(0, axis.interior.stop - left) // size * size

    def ends(start: int, stop: int) -> None:
        for at in range(start, stop, size):
            block(at, [axis.taps(k) for k in range(at, min(at + size, stop))])

    ends(0, left)
    repeat(f, left, whole, size, lambda at: block(at, [range(axis.kernel)] * size))
    ends(whole, axis.count)


def readers(axis: WindowAxis, taps: Sequence[range]) -> dict[int, list[tuple[int, int]]]:
    """For each element that neighbouring windows of these taps read: which windows do, each by which tap."""
    found: dict[int, list[tuple[int, int]]] = {}
    for window, own in enumerate(taps):
        for tap in own:
            found.setdefault(window * axis.stride + tap * axis.dilation, []).append((window, tap))
    return found


def three(values: Sequence[int], missing: int) -> tuple[int, int, int]:
    """What holds of one to three spatial axes, for three of them: the missing ones come first."""
    found = (*(missing,) * (3 - len(values)), *values)
    return found[0], found[1], found[2]


def five(strides: Sequence[int]) -> tuple[int, ...]:
    """Strides of maps [N,C,X…] for three spatial axes."""
    return (*strides[:2], *three(strides[2:], 0))


def pool_axes(step: Pool) -> tuple[WindowAxis, WindowAxis, WindowAxis]:
    """The windows of a pooling along each of three spatial axes."""
    return _axes(step, step.kernel)


def conv_axes(step: Conv) -> tuple[WindowAxis, WindowAxis, WindowAxis]:
    """The windows of a convolution along each of three spatial axes."""
    return _axes(step, step.inputs[1].shape[3:])


def window_axes(
    sizes: Sequence[int],
    counts: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    begin: Sequence[int],
) -> tuple[WindowAxis, WindowAxis, WindowAxis]:
    """The windows along each of three spatial axes, of which one to three are given."""
    geometry = (three(sizes, 1), three(counts, 1), three(kernel, 1), three(strides, 1), three(dilations, 1))
    depth, height, width = (WindowAxis(*numbers) for numbers in zip(*geometry, three(begin, 0), strict=True))
    return depth, height, width


def _axes(step: Conv | Pool, kernel: Sequence[int]) -> tuple[WindowAxis, WindowAxis, WindowAxis]:
    sizes, counts = step.inputs[0].shape[2:], step.output.shape[2:]
    return window_axes(sizes, counts, kernel, step.strides, step.dilations, step.pads_begin)
