"""Transposed convolutions on channels-last data: one matmul computes the products of all taps, which are then added."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.ops.windows import meeting
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.conv2d import Conv
from irload.plan.backends.numpy.kernels.copying import dense
from irload.plan.backends.numpy.kernels.tiles import cut
from irload.plan.backends.numpy.kernels.views import shaped, shaped_constant
from irload.plan.backends.numpy.measured import FEW_ELEMENTS
from irload.plan.threads import ThreadCalls


def transposed(conv: Conv, scratch: Scratch) -> Phases:
    """Return the phases of a transposed convolution with w [G,C/G,O/G,K…], and of its epilogue.

    `pads`: the elements that are cropped. Threads share the channels of the result, because taps overlap in positions
    but not in channels.
    """
    w = conv.w.packed("transposed", _packed)
    groups, depth, wide = w.shape
    taps = list(product(*map(range, conv.kernel)))
    per_group = wide // len(taps)
    weights = shaped(w, groups, depth, len(taps), per_group)
    positions = conv.x.shape[1:-1]
    phases: Phases = []
    x = dense(conv.x, scratch, phases)
    jobs = [(g, 0, per_group) for g in range(groups)]
    if groups == 1:
        jobs = [(0, a, b) for a, b in cut(per_group, scratch.threads if conv.out.size >= FEW_ELEMENTS else 1)]
    begin = [before for before, _ in conv.pads]
    geometry = conv.strides, conv.dilations, begin, positions, conv.out.shape[1:-1]
    overlaps = [[meeting(*numbers) for numbers in zip(tap, *geometry, strict=True)] for tap in taps]
    places = [(tuple(a for a, _ in pairs), tuple(b for _, b in pairs)) for pairs in overlaps]
    apart = all(s >= (k - 1) * d + 1 for s, k, d in zip(conv.strides, conv.kernel, conv.dilations, strict=True))
    parts: list[ThreadCalls] = []
    for first, last in cut(len(jobs), scratch.threads):
        part: ThreadCalls = []
        columns = scratch.take((prod(positions) * len(taps) * max(b - a for _, a, b in jobs[first:last]),))
        for sample, (g, a, b) in product(range(len(x)), jobs[first:last]):
            out = conv.out[sample, ..., g * per_group + a : g * per_group + b]
            rows = shaped(x[sample], prod(positions), -1)[:, g * depth : (g + 1) * depth]
            block = shaped(columns[: prod(positions) * len(taps) * (b - a)], len(rows), -1)
            part.append((np.matmul, (rows, shaped_constant(weights[g, :, :, a:b], depth, -1), block)))
            part.append((out.fill, (0,)))
            spread = shaped(block, *positions, len(taps), b - a)
            for k, (source, target) in enumerate(places):
                values, place = spread[..., k, :][source], out[target]
                part.append((np.copyto, (place, values)) if apart else (np.add, (place, values, place)))
        parts.append(part)
    return [*phases, parts, *conv.epilogue.phases(conv.out, scratch)]


def _packed(w: Array) -> Array:
    """Return [G, C/G, K…·O/G] from [G,C/G,O/G,K…]."""
    groups, depth, _ = w.shape[:3]
    return np.ascontiguousarray(shaped_constant(np.moveaxis(w, 2, -1), groups, depth, -1))
