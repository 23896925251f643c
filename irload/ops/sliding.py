"""Windows slid along one axis at a time and reduced: what poolings and neighbourhoods share.

However long, far apart or far outside the windows lie, time and memory stay in proportion to data and result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.ops.windows import FAR, dilated, met, pad_spatial, steps
from irload.record import record

SHORT = 64
"""Elements of a window up to which each is taken for itself."""

Combine = Callable[[tuple[Array, ...], tuple[Array, ...]], tuple[Array, ...]]
"""Makes one of two neighbours, the first of them first; each is one array or several that belong together."""


@record()
class Axis:
    """The windows along one spatial axis: `count` windows of `kernel` elements over `size` elements padded by two pads.

    Rounding up may make the last window reach beyond the padded end.
    """

    axis: int
    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    count: int

    @property
    def reach(self) -> int:
        """The length, padding included, that the windows together span."""
        return (self.count - 1) * self.stride + dilated(self.kernel, self.dilation)

    @property
    def pad(self) -> tuple[int, int]:
        """(begin, end) that the input needs for all windows to lie inside; a negative end drops unused elements."""
        return self.begin, self.reach - self.begin - self.size

    @property
    def inside(self) -> tuple[Array, Array]:
        """For each window, the range of its elements that are of the input and not of the padding: first and end."""
        starts = steps(self.count, self.stride, -self.begin, self.reach)
        first = np.clip(-(starts // self.dilation), 0, self.kernel)
        end = np.clip((self.size - 1 - starts) // self.dilation + 1, first, self.kernel)
        return first.astype(np.int64), end.astype(np.int64)

    @property
    def real(self) -> Array:
        """For each window, how many of its elements are of the input and not of the padding."""
        first, end = self.inside
        return end - first

    def slices(self, rank: int) -> Iterator[tuple[slice, ...]]:
        """For each element of the kernel, what it meets of the padded input: a slice of this axis, all of others."""
        for tap in range(self.kernel):
            start = tap * self.dilation
            along = slice(start, start + (self.count - 1) * self.stride + 1, self.stride)
            yield (*(slice(None),) * self.axis, along, *(slice(None),) * (rank - self.axis - 1))


def padded(data: Array, axes: Sequence[Axis], fill: object) -> tuple[Array, list[Axis]]:
    """`data` with its pads, and the windows over it.

    Of an axis along which the windows are mostly padding, or far from each other, only what they meet is kept.
    """
    found: list[Axis] = []
    for axis in axes:
        if axis.reach > FAR * (axis.size + axis.count):
            first, end = axis.inside
            taps = max(int((end - first).max(initial=1)), 1)
            if axis.reach > FAR * (axis.size + axis.count * taps):
                starts = steps(axis.count, axis.stride, -axis.begin, axis.reach)
                at = starts[:, None] + (first[:, None] + np.arange(taps)) * axis.dilation
                at = np.where(np.arange(taps) < (end - first)[:, None], at, -1)
                data = met(data, axis.axis, at.ravel(), fill)
                axis = replace(axis, size=at.size, kernel=taps, stride=taps, dilation=1, begin=0, end=0)
        found.append(axis)
    return pad_spatial(data, [a.pad for a in found], fill), found


def over_windows(arrays: tuple[Array, ...], axis: Axis, combine: Combine) -> tuple[Array, ...]:
    """What `combine` makes of the elements of each window along one axis, of arrays that are padded.

    Long windows are made of runs of 2, 4, 8… elements, each of two shorter ones: the time grows with the digits of
    their length.
    """
    before = (slice(None),) * axis.axis
    if axis.kernel <= SHORT:
        first, *others = axis.slices(arrays[0].ndim)
        total = tuple(a[first].copy() for a in arrays)
        for place in others:
            total = combine(total, tuple(a[place] for a in arrays))
        return total
    length = axis.reach - (axis.kernel - 1) * axis.dilation
    found: tuple[Array, ...] | None = None
    run, offset = 1, 0
    while True:
        if axis.kernel & run:
            part = tuple(a[(*before, slice(offset, offset + length))] for a in arrays)
            found = tuple(a.copy() for a in part) if found is None else combine(found, part)
            offset += run * axis.dilation
        run, shift = 2 * run, run * axis.dilation
        if run > axis.kernel:
            assert found is not None
            return tuple(a[(*before, slice(0, length, axis.stride))] for a in found)
        left = tuple(a[(*before, slice(0, a.shape[axis.axis] - shift))].copy() for a in arrays)
        arrays = combine(left, tuple(a[(*before, slice(shift, None))] for a in arrays))


def reduce_windows(data: Array, axes: Sequence[Axis], combine: np.ufunc, fill: object) -> Array:
    """Every window of `data` reduced by `combine`, one spatial axis after the other; `fill` is what padding holds."""
    result, axes = padded(data, axes, fill)
    for axis in reversed(axes):
        (result,) = over_windows((result,), axis, lambda a, b: (combine(a[0], b[0], out=a[0]),))
    return result
