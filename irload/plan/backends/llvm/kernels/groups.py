"""Grouped convolutions with few channels per group: several groups are joined to one with block-diagonal weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import DEPTH, ROWS


def groups_per_tile(shape: Sequence[int], target: Target) -> int:
    """The number of groups of weights [G,O,C,K…] that are joined to fill tiles of AMX.

    It minimizes the tiles of sums, then the reads of the data. Groups of one channel are not joined: all weights
    except one in 32 would be 0. Without tiles no groups are joined, since this would save no instruction.
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
    """Weights [G,O,…,C] → [G/n,n·O,…,n·C] for n groups `together`: zeros between channels of different groups."""
    if together == 1:
        return weights
    groups, channels, *taps, depth = weights.shape
    separate = weights.reshape(groups // together, together, channels, *taps, depth)
    result = np.zeros((groups // together, together, channels, *taps, together, depth), weights.dtype)
    for k in range(together):
        result[:, k, ..., k, :] = separate[:, k]
    return result.reshape(groups // together, together * channels, *taps, together * depth)
