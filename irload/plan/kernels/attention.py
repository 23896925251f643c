"""Attention: two batched matmuls around a softmax, head by head, so that the scores stay in cache."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part, Scratch
from irload.plan.kernels.rows import softmax_calls
from irload.plan.kernels.tiles import PRODUCTS, cut


def attention(
    q: Array, k: Array, v: Array, mask: Array | None, out: Array, scale: float, scratch: Scratch, threads: int
) -> list[Part]:
    """softmax(q kᵀ · scale + mask) v over [heads, rows, width]; the mask broadcasts to [heads, rows, keys]."""
    heads, rows, _ = q.shape
    keys = k.shape[1]
    ones = np.ones((keys, 1), np.float32)
    parts: list[Part] = []
    for start, stop in cut(heads, threads if heads * rows * keys * q.shape[2] >= PRODUCTS else 1):
        part: Part = []
        scores, sums = scratch.take((rows, keys)), scratch.take((rows, 1))
        scaled = scratch.take(q.shape[1:])
        for h in range(start, stop):
            part += [
                (np.multiply, (q[h], np.float32(scale), scaled)),
                (np.matmul, (scaled, k[h].T, scores)),
            ]
            if mask is not None:
                part.append((np.add, (scores, mask[h], scores)))
            part += softmax_calls(scores, scores, sums, ones)
            part.append((np.matmul, (scores, v[h], out[h])))
        parts.append(part)
    return parts
