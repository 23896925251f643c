"""Resampling along one axis: a matmul with a banded matrix, or selection by index."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import frozen, shaped
from irload.plan.backends.numpy.measured import BAND
from irload.plan.threads import ThreadCalls


def resample(index: Array, weight: Array, x: Array, out: Array, axis: int, threads: int) -> list[ThreadCalls]:
    """Resample x along `axis`, by taps `index` and `weight` of shape [new size, taps]; x and out are contiguous."""
    lead, trail = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    source, target = shaped(x, lead, -1, trail), shaped(out, lead, -1, trail)
    index, weight = frozen(index.copy()), frozen(weight.copy())
    matrix = np.zeros((len(index), x.shape[axis]), np.float32)
    np.add.at(matrix, (np.arange(len(index))[:, None], index), weight.astype(np.float32))
    if trail == 1:
        turned = frozen(matrix.T.copy())
        return [
            [(_mixed, (source[a:b, :, 0], turned, target[a:b, :, 0], source[a:b], target[a:b], index, weight))]
            for a, b in cut(lead, threads)
        ]
    parts: list[ThreadCalls] = []
    for start, stop in cut(len(index), threads):
        part: ThreadCalls = []
        for i, j in cut_range(start, stop, BAND):
            first, last = int(index[i:j].min()), int(index[i:j].max()) + 1
            inputs, outputs = source[:, first:last], target[:, i:j]
            taps = frozen(index[i:j] - first), weight[i:j]
            part.append((_mixed, (frozen(matrix[i:j, first:last].copy()), inputs, outputs, inputs, outputs, *taps)))
        parts.append(part)
    return parts


def _mixed(a: Array, b: Array, out: Array, x: Array, mixed: Array, index: Array, weight: Array) -> None:
    """out = a @ b. If x has nonfinite values, which products with 0 would spread, sum tap by tap into `mixed`.

    `x` and `mixed`: views of the data and the result as [lead, size, trail].
    """
    if np.isfinite(x.sum()):
        np.matmul(a, b, out)
        return
    total = np.zeros(mixed.shape, np.result_type(x, weight))
    for k in range(index.shape[1]):
        total += np.take(x, index[:, k], 1) * weight[:, k, None]
    np.copyto(mixed, total, casting="same_kind")


def take(indices: Array, x: Array, out: Array, axis: int, threads: int) -> list[ThreadCalls]:
    """out = x[indices] along `axis`, as a broadcast copy if each element is repeated the same number of times."""
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
