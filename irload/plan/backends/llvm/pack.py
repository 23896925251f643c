"""Packing constant weights, once for all plans of a model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from threading import Lock
from weakref import ref

import numpy as np
from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import address
from irload.plan.memory.arena import ALIGNMENT
from irload.portable import around_fork

HUGE_PAGE = 2 << 20
"""The bytes of a large page, by which blocks of weights are aligned."""
TOGETHER = 1 << 20
"""Weights that are rounded to bf16 at once, before they are turned."""
BLOCK = 32 << 20
"""The bytes of a block, of which only those pages take memory that are written to."""


def panels(weights: Array, lanes: int, panel: int) -> Array:
    """Weights [G, channels, sum] → [G, panels, sum, panel·lanes], the last panel filled up with zeros."""
    groups, channels, length = weights.shape
    width = panel * lanes
    count = -(-channels // width)
    packed = aligned_f32((groups, count, length, width))
    for g in range(groups):
        for p in range(count):
            part = weights[g, p * width : (p + 1) * width]
            np.copyto(packed[g, p, :, : len(part)], part.T)
            packed[g, p, :, len(part) :] = 0
    return packed


def pair_panels(weights: Array, lanes: int, panel: int) -> Array:
    """Weights [G, channels, sum] → [G, panels, pairs of the sum, panel·lanes], of f32 that hold two bf16 each.

    The second one of the last pair is 0 where the sum is odd.
    """
    groups, channels, length = weights.shape
    pairs = np.zeros((groups, channels, length + length % 2), bfloat16)
    with np.errstate(invalid="ignore", over="ignore"):
        pairs[..., :length] = weights
    return panels(pairs.view(np.float32), lanes, panel)


def tile_panels(weights: Array, width: int, *, overlap: bool = False) -> Array:
    """Weights [G, channels, taps, depth] → [G, panel, chunk, tap, tile, 16, 16, 2] in bf16, as kernels multiply tiles.

    A panel is `width` tiles of 16 channels, a chunk 32 of `depth`; what is beyond is 0. With `overlap` the last chunk
    is that of the last 32 of the depth, and 0 where the one before has them. The result holds bits.
    """
    groups, channels, taps, depth = weights.shape
    own, chunks = width * 16, -(-depth // 32)
    count = -(-channels // own)
    before = 32 * (chunks - 1)
    last = 32 * chunks - (depth - before) if overlap else before
    packed = _blocks.take(2 * groups * count * own * taps * 32 * chunks)
    pairs = packed.view(np.uint32).reshape(groups, count, chunks, taps, width, 16, 16)
    some = max(1, TOGETHER // (own * taps * 32 * chunks))
    for g, first in product(range(groups), range(0, count, some)):
        part = weights[g, first * own : (first + some) * own]
        panels = min(some, count - first)
        rows = np.zeros((panels * own, taps, 32 * chunks), bfloat16)
        with np.errstate(invalid="ignore", over="ignore"):
            rows[: len(part), :, :before] = part[:, :, :before]
            rows[: len(part), :, last : last + depth - before] = part[:, :, before:]
        turned = rows.view(np.uint32).reshape(panels, width, 16, taps, chunks, 16)
        pairs[g, first : first + panels] = turned.transpose(0, 4, 3, 1, 5, 2)
    return packed.view(np.uint16).reshape(groups, count, chunks, taps, width, 16, 16, 2)


def aligned_f32(shape: tuple[int, ...]) -> Array:
    """An f32 array of undefined content that begins with a cache line."""
    return _blocks.take(4 * prod(shape)).view(np.float32).reshape(shape)


class _Blocks:
    """Memory in blocks so large that the system gives them huge pages, which are had in a fraction of the time.

    A block lives as long as an array in it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._block: Callable[[], Array | None] = lambda: None
        self._used = 0

    def take(self, size: int) -> Array:
        """So many bytes that begin with a cache line."""
        with self.lock:
            block = self._block()
            if block is None or self._used + size > block.size:
                block = np.empty(max(BLOCK, size) + HUGE_PAGE, np.uint8)
                self._block, self._used = ref(block), -address(block) % HUGE_PAGE
            start = self._used
            self._used += -(-size // ALIGNMENT) * ALIGNMENT
            return block[start : start + size]


_blocks = _Blocks()
around_fork(_blocks.lock.acquire, _blocks.lock.release)
