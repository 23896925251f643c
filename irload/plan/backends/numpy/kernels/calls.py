"""What tables of calls are made of: functions that take `out` by position, and working memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.measured import SHARED, TILE
from irload.plan.memory.arena import aligned_bytes
from irload.plan.threads import Call


def maximum(a: Array, b: Any, out: Array) -> None:
    """np.maximum, which alone among the ufuncs (with minimum) no longer takes `out` by position."""
    np.maximum(a, b, out=out)


def minimum(a: Array, b: Any, out: Array) -> None:
    """np.minimum, likewise."""
    np.minimum(a, b, out=out)


def negative(a: Array, out: Array) -> None:
    """−a, as a product: np.negative of NumPy 2.4 goes wrong where both lie four elements apart."""
    np.multiply(a, MINUS_ONE, out)


INFINITE = np.float32(np.inf)
MINUS_ONE = np.float32(-1)


def clip(a: Array, low: np.float32, high: np.float32, out: Array) -> Call:
    """The call that holds `a` between two numbers: the method, as np.clip takes half as long again."""
    return a.clip, (low, high, out)


class Scratch:
    """Working memory of kernels: taken and given back step by step, so that all steps share the same bytes."""

    def __init__(self) -> None:
        self.tile = TILE
        """Elements of a tile."""
        self.chunks: list[Array] = []
        self._at = (0, 0)
        self.peak = 0

    def reset(self) -> None:
        """Give everything back: the step that took it is complete."""
        self._at = (0, 0)
        self.tile = TILE

    def share(self, threads: int, work: int, least: int) -> int:
        """How many threads share a step: all of them where there is work enough, else one.

        Tiles are larger then, as threads also share the interpreter's lock, and ask for it at each call.
        """
        shared = threads if work >= least else 1
        self.tile = TILE if shared == 1 else SHARED
        return shared

    def take(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        """An array of undefined content that is valid until the end of the step."""
        size = int(np.prod(tuple(shape), dtype=object)) * np.dtype(dtype).itemsize
        chunk, offset = self._at
        while chunk < len(self.chunks) and self.chunks[chunk].size - offset < size:
            chunk, offset = chunk + 1, 0
        if chunk == len(self.chunks):
            self.chunks.append(aligned_bytes(max(size, 1 << 20)))
            self.peak = sum(c.size for c in self.chunks)
        self._at = (chunk, -(-(offset + size) // 64) * 64)
        return shaped(self.chunks[chunk][offset : offset + size].view(dtype), *shape)
