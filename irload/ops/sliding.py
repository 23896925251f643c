"""The geometry of sliding windows, and reductions over them, one axis at a time, for pooling and neighbourhoods.

Time and memory are proportional to the data and the result, for any window length, dilation, stride and padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.ops.windows import FAR, dilated, elements_at, pad_spatial, steps
from irload.record import record

SHORT = 64
"""Windows of up to this number of elements are reduced element by element."""

Combine = Callable[[tuple[Array, ...], tuple[Array, ...]], tuple[Array, ...]]
"""Combines two neighbours, in order; each is a tuple of arrays (values, or values with indices)."""


@record()
class WindowAxis:
    """`count` windows of `kernel` elements over `size` elements, along one axis.

    The first window starts `begin` elements before the data; the last one may extend beyond them.
    """

    size: int
    count: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    begin: int = 0

    @property
    def reach(self) -> int:
        """The length, including padding, from the first to the last element of all windows."""
        return (self.count - 1) * self.stride + dilated(self.kernel, self.dilation)

    @property
    def pad(self) -> tuple[int, int]:
        """(begin, end) padding that covers all windows; a negative end drops unused elements."""
        return self.begin, self.reach - self.begin - self.size

    def taps(self, position: int) -> range:
        """The elements of a window inside the data rather than the padding."""
        start = position * self.stride - self.begin
        first = min(max(0, -(start // self.dilation)), self.kernel)
        return range(first, max(first, min(self.kernel, (self.size - 1 - start) // self.dilation + 1)))

    @property
    def inside(self) -> tuple[Array, Array]:
        """`taps` of all windows: first and end of each range."""
        starts = steps(self.count, self.stride, -self.begin, self.reach)
        first = np.clip(-(starts // self.dilation), 0, self.kernel)
        end = np.clip((self.size - 1 - starts) // self.dilation + 1, first, self.kernel)
        return first.astype(np.int64), end.astype(np.int64)

    @property
    def real(self) -> Array:
        """For each window, the number of its elements inside the data rather than the padding."""
        first, end = self.inside
        return end - first

    @property
    def interior(self) -> tuple[int, int]:
        """The first window without padding, and the window after the last."""
        reach = self.size - dilated(self.kernel, self.dilation) + self.begin
        first = min(-(-max(self.begin, 0) // self.stride), self.count)
        return first, max(first, min(self.count, reach // self.stride + 1))

    @property
    def is_padded(self) -> bool:
        """True if some windows contain padding."""
        begin, end = self.pad
        return begin > 0 or end > 0

    def slices(self, rank: int, axis: int) -> Iterator[tuple[slice, ...]]:
        """For each element of the kernel, the elements of the padded data at that offset, as slices of all axes."""
        for tap in range(self.kernel):
            start = tap * self.dilation
            along = slice(start, start + (self.count - 1) * self.stride + 1, self.stride)
            yield (*(slice(None),) * axis, along, *(slice(None),) * (rank - axis - 1))


def window_axes(*geometry: Sequence[int]) -> tuple[WindowAxis, ...]:
    """The windows along several axes: the fields of `WindowAxis` in their order, each with a number per axis."""
    return tuple(WindowAxis(*numbers) for numbers in zip(*geometry, strict=True))


def padded(data: Array, axes: Sequence[WindowAxis], fill: object) -> tuple[Array, list[WindowAxis]]:
    """`data` with padding along its last axes, and the windows over each of them.

    If the windows along an axis are mostly padding, or far apart, only the elements inside windows are copied.
    """
    reduced: list[WindowAxis] = []
    for number, axis in enumerate(axes, data.ndim - len(axes)):
        if axis.reach > FAR * (axis.size + axis.count):
            first, end = axis.inside
            taps = max(int((end - first).max(initial=1)), 1)
            if axis.reach > FAR * (axis.size + axis.count * taps):
                starts = steps(axis.count, axis.stride, -axis.begin, axis.reach)
                at = starts[:, None] + (first[:, None] + np.arange(taps)) * axis.dilation
                at = np.where(np.arange(taps) < (end - first)[:, None], at, -1)
                data = elements_at(data, number, at.ravel(), fill)
                axis = replace(axis, size=at.size, kernel=taps, stride=taps, dilation=1, begin=0)
        reduced.append(axis)
    return pad_spatial(data, [a.pad for a in reduced], fill), reduced


def over_windows(arrays: tuple[Array, ...], number: int, axis: WindowAxis, combine: Combine) -> tuple[Array, ...]:
    """The elements of each window along axis `number`, reduced by `combine`. The arrays are padded.

    Long windows are combined from runs of 2, 4, 8… elements, each from two shorter runs: the time is logarithmic in
    their length.
    """
    before = (slice(None),) * number
    if axis.kernel <= SHORT:
        first, *others = axis.slices(arrays[0].ndim, number)
        total = tuple(a[first].copy() for a in arrays)
        for tap in others:
            total = combine(total, tuple(a[tap] for a in arrays))
        return total
    length = axis.reach - (axis.kernel - 1) * axis.dilation
    result: tuple[Array, ...] | None = None
    run, offset = 1, 0
    while True:
        if axis.kernel & run:
            part = tuple(a[(*before, slice(offset, offset + length))] for a in arrays)
            result = tuple(a.copy() for a in part) if result is None else combine(result, part)
            offset += run * axis.dilation
        run, shift = 2 * run, run * axis.dilation
        if run > axis.kernel:
            assert result is not None
            return tuple(a[(*before, slice(0, length, axis.stride))] for a in result)
        left = tuple(a[(*before, slice(0, a.shape[number] - shift))].copy() for a in arrays)
        arrays = combine(left, tuple(a[(*before, slice(shift, None))] for a in arrays))


def reduce_windows(data: Array, axes: Sequence[WindowAxis], combine: np.ufunc, fill: object) -> Array:
    """Every window of `data` reduced by `combine`, one spatial axis after the other; `fill` is the padding value."""
    result, axes = padded(data, axes, fill)
    for k in range(-1, -len(axes) - 1, -1):
        (result,) = over_windows((result,), data.ndim + k, axes[k], lambda a, b: (combine(a[0], b[0], out=a[0]),))
    return result
