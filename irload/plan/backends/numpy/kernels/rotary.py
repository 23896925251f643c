"""Rotary embedding on tiles of rows."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.tiles import cut, tiles
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.backends.numpy.measured import ELEMENTS
from irload.plan.threads import ThreadCalls


def rotate(x: Array, cosine: Array, sine: Array, out: Array, scratch: Scratch) -> list[ThreadCalls]:
    """x·cos + (−x₂, x₁)·sin over the last axis, whose halves are x₁ and x₂. `out` must not overlap the operands."""
    half = x.shape[-1] // 2
    wide = [out, x, *(np.broadcast_to(a, x.shape) for a in (cosine, sine))]
    if x.ndim == 1:
        wide = [a[None] for a in wide]
    threads = scratch.share(x.size, ELEMENTS)
    pieces = list(tiles(wide, 0, len(wide[0]), scratch.tile))
    parts: list[ThreadCalls] = []
    for start, stop in cut(len(pieces), threads):
        part: ThreadCalls = []
        largest = max((piece[0][..., :half] for piece in pieces[start:stop]), key=lambda a: a.size)
        memory = scratch.take((largest.size,))
        for o, a, c, s in pieces[start:stop]:
            first, second = (..., slice(half)), (..., slice(half, None))
            turned = shaped(memory[: o.size // 2], *o[first].shape)
            part += [
                (np.multiply, (a, c, o)),
                (np.multiply, (a[second], s[first], turned)),
                (np.subtract, (o[first], turned, o[first])),
                (np.multiply, (a[first], s[second], turned)),
                (np.add, (o[second], turned, o[second])),
            ]
        parts.append(part)
    return parts
