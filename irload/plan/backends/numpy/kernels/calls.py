"""Elements of call tables: functions with a positional `out`, and working memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.measured import SHARED_TILE, TILE
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import Call, ThreadCalls

Phases = list[list[ThreadCalls]]
"""Phases run in sequence; the parts of a phase may run concurrently."""


def maximum(a: Array, b: Any, out: Array) -> None:
    """np.maximum, which (like minimum) does not accept `out` by position."""
    np.maximum(a, b, out=out)


def minimum(a: Array, b: Any, out: Array) -> None:
    """np.minimum, which does not accept `out` by position."""
    np.minimum(a, b, out=out)


def negative(a: Array, out: Array) -> None:
    """−a, as a product: np.negative of NumPy 2.4 is wrong if both arrays have a stride of four elements."""
    np.multiply(a, MINUS_ONE, out)


INFINITE = np.float32(np.inf)
MINUS_ONE = np.float32(-1)


def clip(a: Array, low: np.float32, high: np.float32, out: Array) -> Call:
    """Return the call that clamps `a`: the method, because np.clip takes 1.5 times as long."""
    return a.clip, (low, high, out)


class Scratch:
    """Working memory of kernels. Each step reserves and releases it, so all steps use the same bytes."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        """The number of threads that can share a step."""
        self.tile = TILE
        """Elements of a tile."""
        self.chunks: list[Array] = []
        self._at = (0, 0)
        self.peak = 0

    def reset(self) -> None:
        """Release everything at the end of a step."""
        self._at = (0, 0)
        self.tile = TILE

    def share(self, work: int, least: int) -> int:
        """Return the number of threads for a step: all if it has at least `least` work, otherwise one.

        Tiles are larger with several threads, because threads contend for the interpreter lock at each call.
        """
        shared = self.threads if work >= least else 1
        self.tile = TILE if shared == 1 else SHARED_TILE
        return shared

    def take(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        """Return an uninitialised array that is valid until the end of the step."""
        size = int(np.prod(tuple(shape), dtype=object)) * np.dtype(dtype).itemsize
        chunk, offset = self._at
        while chunk < len(self.chunks) and self.chunks[chunk].size - offset < size:
            chunk, offset = chunk + 1, 0
        if chunk == len(self.chunks):
            self.chunks.append(aligned_bytes(max(size, 1 << 20)))
            self.peak = sum(c.size for c in self.chunks)
        self._at = (chunk, -(-(offset + size) // 64) * 64)
        return shaped(self.chunks[chunk][offset : offset + size].view(dtype), *shape)
