"""Groups of few channels side by side in tiles: one group of all their channels, its weights blocks on a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import DEPTH, ROWS


def side_by_side(shape: Sequence[int], target: Target) -> int:
    """The number of groups of weights [G,O,C,K…] that share tiles, so that tiles of data are full.

    It gives the fewest tiles of sums, then the fewest reads of the data. Groups of one channel stay apart: their blocks
    would be zeros but for one number in 32. On targets without tiles all groups do: no instruction would be saved.
    """
    groups, channels, depth = shape[:3]
    if depth == 1 or not target.tiles:
        return 1
    counts = [n for n in range(1, min(groups, DEPTH // depth) + 1) if groups % n == 0]
    return min(counts, key=lambda n: (-(-n * channels // ROWS) / n, -n), default=1)


def joined(shape: Sequence[int], together: int) -> tuple[int, int, int]:
    """The groups of weights [G,O,C,K…] with `together` of them joined, and the channels of their results and data."""
    groups, channels, depth = shape[:3]
    return groups // together, channels * together, depth * together


def block_diagonal(weights: Array, together: int) -> Array:
    """Weights [G,O,…,C] → [G/n,n·O,…,n·C] for n groups `together`: zeros where data and result are of other groups."""
    if together == 1:
        return weights
    groups, channels, *taps, depth = weights.shape
    apart = weights.reshape(groups // together, together, channels, *taps, depth)
    found = np.zeros((groups // together, together, channels, *taps, together, depth), weights.dtype)
    for k in range(together):
        found[:, k, ..., k, :] = apart[:, k]
    return found.reshape(groups // together, together * channels, *taps, together * depth)
