"""Attention: two matmuls around a softmax, head by head, so that the scores stay in cache."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part, Scratch
from irload.plan.kernels.rows import softmax_calls
from irload.plan.kernels.tiles import PRODUCTS, TILE, cut


def attention(
    q: Array, k: Array, v: Array, mask: Array | None, out: Array, scale: float, scratch: Scratch, threads: int
) -> list[Part]:
    """softmax(q kᵀ · scale + mask) v over [heads…, rows, width]. All broadcast to the leading axes of `out`.

    The rows of q, k, v and out may lie anywhere: heads that share keys share them as views.
    """
    lead, rows, keys = out.shape[:-2], q.shape[-2], k.shape[-2]
    q, k, v = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (q, k, v))
    mask = None if mask is None else np.broadcast_to(mask, (*lead, rows, keys))
    if prod(lead) * rows * keys <= TILE:
        return [_all_heads(q, k, v, mask, out, scale, scratch)]
    heads = list(np.ndindex(*lead))
    ones = np.ones((keys, 1), np.float32)
    parts: list[Part] = []
    for start, stop in cut(len(heads), threads if prod(lead) * rows * keys * q.shape[-1] >= PRODUCTS else 1):
        part: Part = []
        scores, sums = scratch.take((rows, keys)), scratch.take((rows, 1))
        scaled = scratch.take(q.shape[-2:])
        for h in heads[start:stop]:
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


def _all_heads(q: Array, k: Array, v: Array, mask: Array | None, out: Array, scale: float, scratch: Scratch) -> Part:
    """The same with few calls, where the scores of all heads fit in a tile."""
    scores, scaled = scratch.take((*q.shape[:-1], k.shape[-2])), scratch.take(q.shape)
    part: Part = [(np.multiply, (q, np.float32(scale), scaled)), (np.matmul, (scaled, k.swapaxes(-1, -2), scores))]
    if mask is not None:
        part.append((np.add, (scores, mask, scores)))
    flat = scores.reshape(-1, scores.shape[-1])
    ones = np.ones((flat.shape[1], 1), np.float32)
    part += softmax_calls(flat, flat, scratch.take((len(flat), 1)), ones)
    return [*part, (np.matmul, (scores, v, out))]


def keep(mask: Array, out: Array) -> None:
    """0 where the boolean mask keeps, −∞ where it drops."""
    out.fill(-np.inf)
    np.copyto(out, 0, where=mask)
