"""Attention: two matmuls around a softmax, in blocks of heads whose scores stay in cache."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.rows import softmax_calls
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import frozen, shaped
from irload.plan.backends.numpy.measured import PRODUCTS, TILE
from irload.plan.threads import ThreadCalls


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    dropped: tuple[Array, float] | None,
    out: Array,
    scales: tuple[float, float],
    scratch: Scratch,
) -> list[ThreadCalls]:
    """softmax((q · scales[0]) kᵀ · scales[1] + mask) v over [heads…, rows, width].

    All operands broadcast to the leading axes of `out`.

    `dropped` is a boolean array and a number: scores where the array is true are set to the number. The scales are
    applied separately: q · scale may overflow where q kᵀ does not, and the reverse, and the sign of an infinite score
    would be wrong.

    The rows of q, k, v and out may have any strides, so heads can share keys as views.
    """
    lead, rows, keys, width = out.shape[:-2], q.shape[-2], k.shape[-2], q.shape[-1]
    q, k, v = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (q, k, v))
    lost_keys, fill = dropped or (None, 0.0)
    mask, lost_keys = (None if x is None else np.broadcast_to(x, (*lead, rows, keys)) for x in (mask, lost_keys))
    blocks, size = [(slice(None),) * len(lead)], lead  # all in one
    if lead and prod(lead) * rows * keys > TILE:
        most = max(1, TILE // (rows * keys))
        blocks = [(*at, slice(*r)) for at in np.ndindex(*lead[:-1]) for r in cut_range(0, lead[-1], most)]
        size = (min(most, lead[-1]),)
    ones = frozen(np.ones((keys, 1), np.float32))
    parts: list[ThreadCalls] = []
    for start, stop in cut(len(blocks), scratch.share(prod(lead) * rows * keys * width, PRODUCTS)):
        part: ThreadCalls = []
        scores = scratch.take((*size, rows, keys))
        height = prod(size) * rows
        sums, lost = scratch.take((height, 1)), scratch.take((height, keys), np.bool_)
        scaled = scratch.take((*size, rows, width)) if scales[0] != 1 else scores
        for at in blocks[start:stop]:
            a, b, c, o = q[at], k[at], v[at], out[at]
            s = scores[: len(a)]
            flat = shaped(s, -1, keys)
            if scales[0] != 1:
                part.append((np.multiply, (a, np.float32(scales[0]), scaled[: len(a)])))
                a = scaled[: len(a)]
            part.append((np.matmul, (a, b.swapaxes(-1, -2), s)))
            if scales[1] != 1:
                part.append((np.multiply, (s, np.float32(scales[1]), s)))
            if mask is not None:
                part.append((np.add, (s, mask[at], s)))
            if lost_keys is not None:
                part.append((np.copyto, (s, np.float32(fill), "same_kind", lost_keys[at])))
            part += softmax_calls(flat, flat, sums[: len(flat)], lost[: len(flat)], ones)
            part.append((np.matmul, (s, c, o)))
        parts.append(part)
    return parts
