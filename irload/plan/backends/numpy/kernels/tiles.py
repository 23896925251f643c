"""Divides arrays into tiles that fit the cache, and ranges among threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array


def collapse(arrays: Sequence[Array]) -> list[Array]:
    """Return arrays of equal shape with adjacent axes merged, where the strides of every array allow it.

    At least one axis remains, possibly of length 1.
    """
    shape = arrays[0].shape
    keep = [k for k, n in enumerate(shape) if n != 1] or [0]
    sizes = [shape[k] for k in keep]
    strides = [[a.strides[k] for k in keep] for a in arrays]
    axis = len(sizes) - 2
    while axis >= 0:
        if all(s[axis] == s[axis + 1] * sizes[axis + 1] for s in strides):
            sizes[axis : axis + 2] = [sizes[axis] * sizes[axis + 1]]
            for s in strides:
                del s[axis]
        axis -= 1
    return [as_strided(a, sizes, s) for a, s in zip(arrays, strides, strict=True)]


def by_memory(arrays: Sequence[Array], like: Array) -> list[Array]:
    """Return the arrays with axes in the memory order of `like`, largest stride first."""
    order = sorted(range(like.ndim), key=lambda k: (-abs(like.strides[k]), k))
    return [a.transpose(order) for a in arrays]


def cut(count: int, pieces: int) -> list[tuple[int, int]]:
    """Split `count` into at most `pieces` ranges of nearly equal length."""
    pieces = max(1, min(pieces, count))
    edges = [count * k // pieces for k in range(pieces + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def tiles(arrays: Sequence[Array], start: int, stop: int, size: int) -> Iterator[list[Array]]:
    """Yield tiles of about `size` elements of the range start..stop of the first axis; long rows are split, too."""
    row = int(np.prod(arrays[0].shape[1:], dtype=object))
    if row > 2 * size and arrays[0].ndim > 1:
        for k in range(start, stop):
            inner = [a[k] for a in arrays]
            yield from tiles(inner, 0, inner[0].shape[0], size)
        return
    for a, b in cut_range(start, stop, max(1, size // max(row, 1))):
        yield [x[a:b] for x in arrays]


def cut_range(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    """Split start..stop into ranges of nearly equal length, none longer than `step`."""
    for a, b in cut(stop - start, -(-(stop - start) // step)):
        yield start + a, start + b
