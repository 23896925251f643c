"""Group normalisation on channels-last data: sums over positions as matmuls, then one factor per channel."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import frozen, shaped
from irload.plan.backends.numpy.measured import FEW_ELEMENTS, TILE
from irload.plan.threads import ThreadCalls


def group_normalize(
    x: Array, gamma: Array, beta: Array, out: Array, groups: int, eps: float, scratch: Scratch
) -> list[ThreadCalls]:
    """Return the phases for contiguous x and out [N, positions, channels]; `out` may be `x`. Threads share samples."""
    n, positions, channels = x.shape
    size = channels // groups
    ones = frozen(np.ones((1, positions), np.float32))
    share = np.float32(1 / (positions * size))
    parts: list[ThreadCalls] = []
    for start, stop in cut(n, scratch.threads if x.size >= FEW_ELEMENTS else 1):
        part: ThreadCalls = []
        rows = max(1, TILE // channels)
        squares = scratch.take((min(rows, positions), channels))
        sums, total, mean = (scratch.take((1, channels)) for _ in range(3))
        column = scratch.take((groups, 1))
        grouped = [shaped(a, groups, size) for a in (sums, total, mean)]
        for sample in range(start, stop):
            source, result = x[sample], out[sample]
            part += [(np.matmul, (ones, source, sums)), *_averages(grouped[0], share, column, grouped[2])]
            part.append((total.fill, (0,)))
            blocks = list(cut_range(0, positions, rows))
            for a, b in blocks:
                part += [
                    (np.subtract, (source[a:b], mean, result[a:b])),
                    (np.square, (result[a:b], squares[: b - a])),
                    (np.matmul, (ones[:, a:b], squares[: b - a], sums)),
                    (np.add, (total, sums, total)),
                ]
            part += [
                *_averages(grouped[1], share, column, grouped[0]),
                (np.add, (sums, np.float32(eps), sums)),
                (np.sqrt, (sums, sums)),
                (np.divide, (shaped(gamma, 1, -1), sums, sums)),
            ]
            for a, b in blocks:
                part += [
                    (np.multiply, (result[a:b], sums, result[a:b])),
                    (np.add, (result[a:b], beta, result[a:b])),
                ]
        parts.append(part)
    return parts


def _averages(sums: Array, share: np.float32, column: Array, out: Array) -> ThreadCalls:
    """Return the calls that write the mean of each group to all its channels, from channel sums [groups, size]."""
    return [(_summed, (sums, column)), (np.multiply, (column, share, out))]


def _summed(x: Array, out: Array) -> None:
    np.add.reduce(x, axis=1, out=out, keepdims=True)
