"""Packing constant weights, once for all plans of a model."""

from __future__ import annotations

from math import prod

import numpy as np
from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.memory.memory import aligned_bytes


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


def tile_panels(weights: Array, width: int) -> Array:
    """Weights [G, channels, taps, depth] → [G, panel, chunk, tap, tile, 16, 16, 2] in bf16, as kernels multiply tiles.

    A panel is `width` tiles of 16 channels, a chunk 32 of `depth`; what is beyond is 0. The result holds bits.
    """
    groups, channels, taps, depth = weights.shape
    own, chunks = width * 16, -(-depth // 32)
    count = -(-channels // own)
    shape = (groups, count, chunks, taps, width, 16, 16, 2)
    packed = aligned_bytes(2 * prod(shape)).view(np.uint16).reshape(shape)
    for g in range(groups):
        for p in range(count):
            part = weights[g, p * own : (p + 1) * own]
            whole = np.zeros((own, taps, 32 * chunks), np.float32)
            whole[: len(part), :, :depth] = part
            turned = whole.reshape(width, 16, taps, chunks, 16, 2).transpose(3, 2, 0, 4, 1, 5)
            with np.errstate(invalid="ignore", over="ignore"):
                packed[g, p] = turned.astype(bfloat16).view(np.uint16)
    return packed


def aligned_f32(shape: tuple[int, ...]) -> Array:
    """An f32 array of undefined content that begins with a cache line."""
    return aligned_bytes(4 * prod(shape)).view(np.float32).reshape(shape)
