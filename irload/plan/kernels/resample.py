"""Resampling along one axis: a matmul with a matrix of which only a band is not zero, or elements taken by index."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part
from irload.plan.kernels.tiles import cut, cut_range
from irload.plan.kernels.views import frozen, shaped

BAND = 32
"""Rows of the result made at once: with more of them fewer columns of the matrix could be left out."""


def resample(matrix: Array, x: Array, out: Array, axis: int, threads: int) -> list[Part]:
    """Out = matrix @ x along `axis`; x and out are contiguous."""
    lead, trail = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    source, target = shaped(x, lead, -1, trail), shaped(out, lead, -1, trail)
    if trail == 1:
        weights = frozen(matrix.T.copy())
        return [[(np.matmul, (source[a:b, :, 0], weights, target[a:b, :, 0]))] for a, b in cut(lead, threads)]
    parts: list[Part] = []
    for start, stop in cut(len(matrix), threads):
        part: Part = []
        for i, j in cut_range(start, stop, BAND):
            columns = np.flatnonzero(matrix[i:j].any(axis=0))
            first, last = (int(columns[0]), int(columns[-1]) + 1) if columns.size else (0, 1)
            part.append((np.matmul, (matrix[i:j, first:last], source[:, first:last], target[:, i:j])))
        parts.append(part)
    return parts


def take(indices: Array, x: Array, out: Array, axis: int, threads: int) -> list[Part]:
    """Out = x[indices] along `axis`; a broadcast copy where every element is repeated equally often."""
    times, rest = divmod(len(indices), x.shape[axis])
    if not rest and times and np.array_equal(indices, np.repeat(np.arange(x.shape[axis]), times)):
        source = np.expand_dims(x, axis + 1)
        shape = (*out.shape[:axis], x.shape[axis], times, *out.shape[axis + 1 :])
        target = shaped(out, *shape)
        return [
            [(np.copyto, (_along(target, axis, a, b), _along(source, axis, a, b)))]
            for a, b in cut(x.shape[axis], threads)
        ]
    return [
        [(np.take, (x, indices[a:b], axis, _along(out, axis, a, b), "clip"))] for a, b in cut(len(indices), threads)
    ]


def _along(array: Array, axis: int, start: int, stop: int) -> Array:
    return array[(*(slice(None),) * axis, slice(start, stop))]
