"""Memory for packed weights, in blocks large enough for huge pages."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from threading import Lock
from weakref import ref

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import address
from irload.plan.memory.arena import ALIGNMENT
from irload.system.forks import unforked

HUGE_PAGE = 2 << 20
"""The size of a huge page in bytes, to which blocks are aligned."""
BLOCK = 32 << 20
"""The size of a block in bytes. Only written pages use physical memory."""


def aligned_f32(shape: tuple[int, ...]) -> Array:
    """Return an uninitialized f32 array, aligned to cache lines."""
    return weight_bytes(4 * prod(shape)).view(np.float32).reshape(shape)


def aligned_copy(array: Array) -> Array:
    """Return a copy of an array as f32, aligned to cache lines."""
    copy = aligned_f32(array.shape)
    copy[...] = array
    return copy


def weight_bytes(nbytes: int) -> Array:
    """Return uninitialized bytes, aligned to cache lines."""
    return _blocks.take(nbytes)


class _Blocks:
    """Allocates from large blocks, which the system backs by huge pages: these take a fraction of the time to map.

    A block is released with the last array in it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._block: Callable[[], Array | None] = lambda: None
        self._used = 0

    def take(self, size: int) -> Array:
        """Return `size` bytes, aligned to cache lines."""
        with unforked, self.lock:
            block = self._block()
            if block is None or self._used + size > block.size:
                block = np.empty(max(BLOCK, size) + HUGE_PAGE, np.uint8)
                self._block, self._used = ref(block), -address(block) % HUGE_PAGE
            start = self._used
            self._used += -(-size // ALIGNMENT) * ALIGNMENT
            return block[start : start + size]


_blocks = _Blocks()
