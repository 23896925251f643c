"""Samples of feature maps at real coordinates, for the pooling of regions of interest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.errors import ExecutionError, LimitExceeded

SAMPLES = 1 << 28
"""Maximum number of samples of one region, over all channels: 1000 × 1000 cells of 256 channels."""

ReadCells = Callable[[Array, Array], Array]
"""Takes row and column indices that broadcast; returns the cells at them, with any leading axes."""


def bilinear(read: ReadCells, y: Array, x: Array, size: tuple[int, int]) -> Array:
    """The values at real coordinates, interpolated between four cells; coordinates are clamped to the map."""
    height, width = size
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down, across = y - top.astype(y.dtype), x - left.astype(x.dtype)
    upper = read(top, left) * (1 - across) + read(top, right) * across
    lower = read(bottom, left) * (1 - across) + read(bottom, right) * across
    return upper * (1 - down) + lower * down


def cells(image: Array) -> ReadCells:
    """The reader of a feature map [..., height, width]."""
    return lambda y, x: image[..., y, x]


def check_samples(count: int) -> None:
    """Raise LimitExceeded if one region takes more samples, over all channels, than any real model does."""
    if count > SAMPLES:
        raise LimitExceeded(f"one region of interest takes {count} samples; at most {SAMPLES} are allowed")


def round_away(x: Array) -> Array:
    """Rounds half away from zero."""
    return np.trunc(x + np.copysign(x.dtype.type(0.5), x))


def batch_of(index: float, count: int) -> int:
    """The batch element of a region. Raises ExecutionError if it does not exist."""
    if not 0 <= index < count:
        raise ExecutionError(f"a region of interest is in batch element {index:g}, found {count} elements")
    return int(index)


def sample_bins(
    image: Array,
    start: Sequence[float],
    size: Sequence[float],
    bins: tuple[int, int],
    ratio: int,
    mode: str = "avg",
    transform: Callable[[Array, Array], tuple[Array, Array]] | None = None,
) -> Array:
    """One region of a map [channels, height, width], pooled to [channels, *bins].

    Each bin is the mean (mode max: the maximum, at least 0) of `ratio` × `ratio` evenly spaced samples; ratio 0 means
    the size of the bin in cells, rounded up; with a negative ratio the result is 0. Samples more than a cell outside
    the map are 0. `start` and `size` are (y, x) in cells; `transform` may move the samples.
    """
    channels, height, width = image.shape
    steps = [np.float32(length) / np.float32(count) for length, count in zip(size, bins, strict=True)]
    if not ratio and not np.isfinite(steps).all():
        raise ExecutionError(f"a region of interest is {size[0]:g} × {size[1]:g} cells large")
    counts = [ratio or max(int(np.ceil(step)), 0) for step in steps]
    if min(counts) <= 0:
        return np.zeros((channels, *bins), image.dtype)
    check_samples(channels * math.prod(bins) * math.prod(counts))
    y, x = (
        (begin + step * np.arange(n)[:, None] + step / count * (np.arange(count) + 0.5)).astype(image.dtype)
        for begin, step, n, count in zip(start, steps, bins, counts, strict=True)
    )
    if mode == "avg" and transform is None:
        (top, rows), (left, columns) = _means(y, height), _means(x, width)
        part = image[:, top : top + rows.shape[1], left : left + columns.shape[1]]
        if np.isfinite(part).all():
            return np.tensordot(np.tensordot(rows, part, (1, 1)), columns, (2, 1)).swapaxes(0, 1)
    y, x = y.reshape(-1, 1), x.reshape(1, -1)
    if transform is not None:
        y, x = transform(y, x)
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    values = np.where(inside, bilinear(cells(image), y, x, (height, width)), 0)
    values = values.reshape(channels, bins[0], counts[0], bins[1], counts[1])
    return values.max((2, 4), initial=0) if mode == "max" else values.mean((2, 4))


def _means(at: Array, size: int) -> tuple[int, Array]:
    """The mean over the samples of each bin along one axis as a matrix [bins, cells], and the first of these cells.

    `at`: coordinates [bins, samples]. Bilinear samples of a grid are interpolated along each axis separately.
    """
    inside = ((at >= -1) & (at <= size)) / at.dtype.type(at.shape[1])
    at = np.clip(at, 0, size - 1)
    low = np.floor(at).astype(np.int64)
    high, share = np.minimum(low + 1, size - 1), at - low.astype(at.dtype)
    first, bins = int(low.min()), np.arange(len(at))[:, None]
    weights = np.zeros((len(at), int(high.max()) + 1 - first), at.dtype)
    np.add.at(weights, (bins, low - first), (1 - share) * inside)
    np.add.at(weights, (bins, high - first), share * inside)
    return first, weights
