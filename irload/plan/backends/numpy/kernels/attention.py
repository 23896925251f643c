"""Attention: two matmuls around a softmax, for as many heads at a time as have scores that stay in the cache."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.rows import LOWEST, softmax_calls
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import frozen, shaped
from irload.plan.backends.numpy.measured import PRODUCTS, TILE
from irload.plan.threads import Part


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    dropped: Array | None,
    out: Array,
    scale: float,
    scratch: Scratch,
    threads: int,
) -> list[Part]:
    """softmax(q kᵀ · scale + mask) v over [heads…, rows, width]. All broadcast to the leading axes of `out`.

    Scores are −∞ where the boolean `dropped` says so, whatever they were.

    The rows of q, k, v and out may lie anywhere: heads that share keys share them as views.
    """
    lead, rows, keys, width = out.shape[:-2], q.shape[-2], k.shape[-2], q.shape[-1]
    q, k, v = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (q, k, v))
    mask, dropped = (None if x is None else np.broadcast_to(x, (*lead, rows, keys)) for x in (mask, dropped))
    blocks, size = [(slice(None),) * len(lead)], lead  # all in one
    if lead and prod(lead) * rows * keys > TILE:
        most = max(1, TILE // (rows * keys))
        blocks = [(*at, slice(*r)) for at in np.ndindex(*lead[:-1]) for r in cut_range(0, lead[-1], most)]
        size = (min(most, lead[-1]),)
    ones = frozen(np.ones((keys, 1), np.float32))
    parts: list[Part] = []
    for start, stop in cut(len(blocks), scratch.share(threads, prod(lead) * rows * keys * width, PRODUCTS)):
        part: Part = []
        scores, scaled = scratch.take((*size, rows, keys)), scratch.take((*size, rows, width))
        height = prod(size) * rows
        sums, lost = scratch.take((height, 1)), scratch.take((height, keys), np.bool_)
        for at in blocks[start:stop]:
            a, b, c, o = q[at], k[at], v[at], out[at]
            s, t = scores[: len(a)], scaled[: len(a)]
            flat = shaped(s, -1, keys)
            part += [(np.multiply, (a, np.float32(scale), t)), (np.matmul, (t, b.swapaxes(-1, -2), s))]
            if mask is not None:
                part.append((np.add, (s, mask[at], s)))
            if dropped is not None:
                part.append((np.copyto, (s, LOWEST, "same_kind", dropped[at])))
            part += softmax_calls(flat, flat, sums[: len(flat)], lost[: len(flat)], ones)
            part.append((np.matmul, (s, c, o)))
        parts.append(part)
    return parts
