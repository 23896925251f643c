"""Windows over spatial axes, for convolution and pooling: padding, output sizes, and views of the windows.

The axes of a tensor are batch, channels, then the spatial axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array
from irload.errors import AttributeInvalid, ShapeMismatch

NON_SPATIAL = 2
"""Batch and channels precede the spatial axes."""

AUTO_PADS = ("explicit", "same_upper", "same_lower", "valid")


class Windowed(Op):
    """Operations with a window over 1 to 3 spatial axes: its padding, and attributes with one value per axis.

    `pads_begin` and `pads_end` apply only with auto_pad explicit. same_upper and same_lower pad so that ceil(in/stride)
    windows fit, with the odd element at the end or at the beginning; valid does not pad.
    """

    pads_begin = attr.integers(default=(), rule=attr.non_negative, spec_required=True)
    pads_end = attr.integers(default=(), rule=attr.non_negative, spec_required=True)
    auto_pad = attr.choice(*AUTO_PADS, default="explicit")

    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()

    @property
    def pads_same(self) -> bool:
        """True if the padding depends on the input size."""
        return self.auto_pad in ("same_upper", "same_lower")

    def per_axis(self, name: str, spatial: int) -> tuple[int, ...]:
        """The list attribute `name`, one value per spatial axis. Raises AttributeInvalid for another length."""
        values: tuple[int, ...] = getattr(self, name)
        if not values:
            return (0 if "pad" in name else 1,) * spatial
        if len(values) != spatial:
            raise AttributeInvalid(
                f"attribute {name} must have one value for each of {spatial} spatial axes, found {len(values)}"
            )
        return values

    def explicit_pads(self, spatial: int) -> list[tuple[int, int]]:
        """(begin, end) of each spatial axis if the input size does not matter: zero unless auto_pad is explicit."""
        pads = zip(self.per_axis("pads_begin", spatial), self.per_axis("pads_end", spatial), strict=True)
        return list(pads) if self.auto_pad == "explicit" else [(0, 0)] * spatial

    def pads(self, sizes: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
        """(begin, end) of each spatial axis, for an input of `sizes` and a window of `kernel`."""
        if not self.pads_same:
            return self.explicit_pads(len(sizes))
        steps = zip(
            sizes, kernel, self.per_axis("strides", len(sizes)), self.per_axis("dilations", len(sizes)), strict=True
        )
        return [halves(max((-(-n // s) - 1) * s + dilated(k, d) - n, 0), self.auto_pad) for n, k, s, d in steps]


def dilated(kernel: int, dilation: int) -> int:
    """The length that a window of `kernel` elements, `dilation` apart, spans."""
    return (kernel - 1) * dilation + 1


def dilated_dim(kernel: Dim, dilation: int) -> Dim:
    """`dilated` on a dim."""
    return (kernel - 1) * dilation + 1


def halves(total: int, auto_pad: str) -> tuple[int, int]:
    """A total padding as (begin, end); the odd element goes to the end for same_upper, else to the beginning."""
    small = total // 2
    return (small, total - small) if auto_pad == "same_upper" else (total - small, small)


def check_fits(span: int, padded: Dim, axis: int) -> None:
    """Raise ShapeMismatch if a window of known size does not fit once into an input of known size."""
    if padded.is_static and span > padded.lo:
        raise ShapeMismatch(
            f"the window spans {span} elements on spatial axis {axis}, more than the padded input's {padded}"
        )


def check_spatial(name: str, shape: Shape) -> None:
    """Raise ShapeMismatch for a rank other than 3, 4 or 5."""
    if shape.rank not in (None, 3, 4, 5):
        raise ShapeMismatch(f"{name} must have 1 to 3 spatial axes, so rank 3, 4 or 5; found shape {shape}")


def tail(shape: Shape, spatial: int) -> tuple[Dim, ...]:
    """The last `spatial` dims; unknown dims for an unranked shape."""
    return (ANY,) * spatial if shape.rank is None else shape.dims[len(shape) - spatial :]


# -- on arrays -------------------------------------------------------------------------------------------------------


def pad_spatial(data: Array, pads: Sequence[tuple[int, int]], value: object = 0) -> Array:
    """`data` with its last axes padded by (begin, end) elements of `value`; `data` itself if nothing is padded.

    A negative end crops, for windows that do not reach the last elements.
    """
    if all(b == 0 and e == 0 for b, e in pads):
        return data
    first = data.ndim - len(pads)
    sizes = [b + n + e for (b, e), n in zip(pads, data.shape[first:], strict=True)]
    padded = np.full((*data.shape[:first], *sizes), value, data.dtype)
    inner = [slice(b, b + min(n, n + e)) for (b, e), n in zip(pads, data.shape[first:], strict=True)]
    outer = [slice(0, min(n, n + e)) for (_, e), n in zip(pads, data.shape[first:], strict=True)]
    padded[(..., *inner)] = data[(..., *outer)]
    return padded


def windows(padded: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """A view of every window over the last axes: the leading axes, then the kernel's, then the window's position.

    Nothing is copied, so windows share elements; do not write to the view.
    """
    first = padded.ndim - len(kernel)
    steps = padded.strides[first:]
    positions = [
        (n - dilated(k, d)) // s + 1
        for n, k, s, d in zip(padded.shape[first:], kernel, strides, dilations, strict=True)
    ]
    return as_strided(
        padded,
        (*padded.shape[:first], *kernel, *positions),
        (
            *padded.strides[:first],
            # The stride of an axis of length 1 is unused and might overflow.
            *(t * d if k > 1 else 0 for t, d, k in zip(steps, dilations, kernel, strict=True)),
            *(t * s if n > 1 else 0 for t, s, n in zip(steps, strides, positions, strict=True)),
        ),
        writeable=False,
    )


FAR = 4
"""A padded axis longer than its elements and windows by this factor is reduced to the elements inside windows."""


def window_view(
    data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    value: object = 0,
) -> Array:
    """`windows` of `data` after padding its last axes with `value`.

    If windows along an axis are far apart (extreme strides, dilations or pads), only the elements inside windows are
    copied, so that memory is proportional to data and windows.
    """
    first = data.ndim - len(kernel)
    geometry = list(zip(strides, dilations, pads, strict=True))
    for k, (stride, dilation, (begin, end)) in enumerate(geometry):
        length = begin + data.shape[first + k] + end
        count = max((length - dilated(kernel[k], dilation)) // stride + 1, 0)
        if length > FAR * (data.shape[first + k] + count * kernel[k]):
            starts, taps = steps(count, stride, -begin, length), steps(kernel[k], dilation, 0, length)
            data = elements_at(data, first + k, (starts[:, None] + taps).ravel(), value)
            geometry[k] = kernel[k], 1, (0, 0)
    strides, dilations, pads = zip(*geometry, strict=True)
    return windows(pad_spatial(data, pads, value), kernel, strides, dilations)


def steps(count: int, step: int, start: int, length: int) -> Array:
    """`start`, `start + step`, … as indices on an axis of `length`; Python integers if they may overflow i64."""
    if length < 1 << 61:
        return start + np.arange(count) * step
    return np.array([start + k * step for k in range(count)], object)


def elements_at(data: Array, axis: int, at: Array, value: object) -> Array:
    """The elements of `data` at these indices along an axis; `value` for indices out of range."""
    size = data.shape[axis]
    outside = ((at < 0) | (at >= size)).astype(bool)
    shape = [at.size if k == axis else n for k, n in enumerate(data.shape)]
    if not size:
        return np.full(shape, value, data.dtype)
    elements = np.take(data, np.where(outside, 0, at).astype(np.int64), axis)
    elements[(slice(None),) * axis + (outside,)] = value
    return elements


def meeting(tap: int, stride: int, dilation: int, begin: int, count: int, size: int) -> tuple[slice, slice]:
    """The window positions and axis elements for which element `tap` of the window is inside an axis of `size`.

    At position i, of `count`, its index is i·stride + tap·dilation − begin.
    """
    offset = tap * dilation - begin
    first, end = max(0, -(offset // stride)), min(count, (size - 1 - offset) // stride + 1)
    if end <= first:
        return slice(0, 0), slice(0, 0)
    start = first * stride + offset
    return slice(first, end), slice(start, start + (end - first - 1) * stride + 1, stride if end - first > 1 else 1)
