"""Convolutions with three spatial axes on channels-last data: windows copied into tiles, then one matmul per group."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.conv2d import Conv
from irload.plan.backends.numpy.kernels.packing import pack_matrix
from irload.plan.backends.numpy.kernels.small_gemm import products
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import shaped, shaped_constant
from irload.plan.backends.numpy.measured import CONV3D_TILE, CONV3D_WORK
from irload.plan.threads import ThreadCalls


def _packed(w: Array) -> Array:
    """Return [G, K…·C/G, O/G] from [G,O/G,C/G,K…], or panels of each group."""
    groups, per_group = w.shape[:2]
    return pack_matrix(shaped_constant(np.moveaxis(w, (1, 2), (-1, -2)), groups, -1, per_group))


def convolution(conv: Conv, scratch: Scratch) -> Phases:
    """Return the phases of the convolution and its epilogue. Threads share the first spatial axis of the result."""
    groups, per_group, depth = conv.w.shape[:3]
    w = conv.w.packed("volume", _packed)
    kernel = conv.kernel
    k = prod(kernel) * depth
    padded, fill = _padded(conv, scratch)
    counts = conv.out.shape[1:-1]
    plane = prod(counts[1:])
    rows = max(1, min(counts[0], CONV3D_TILE // (k * plane)))
    shape = (*counts, *kernel, padded.shape[-1])
    steps = padded.strides
    strides = (
        *(s * t for s, t in zip(steps[1:-1], conv.strides, strict=True)),
        *(s * t for s, t in zip(steps[1:-1], conv.dilations, strict=True)),
        steps[-1],
    )
    parts: list[ThreadCalls] = []
    for start, stop in cut(counts[0], scratch.threads if conv.out.size * k >= CONV3D_WORK else 1):
        part: ThreadCalls = []
        tile = scratch.take((min(rows, stop - start), *counts[1:], *kernel, depth))
        narrow = scratch.take((tile.shape[0] * plane, per_group))
        for sample in range(len(conv.x)):
            windows = as_strided(padded[sample], shape, strides, writeable=False)
            for a, b in cut_range(start, stop, rows):
                out = conv.out[sample, a:b]
                for g in range(groups):
                    columns, result = tile[: b - a], narrow[: (b - a) * plane]
                    target = out[..., g * per_group : (g + 1) * per_group]
                    part.append((np.copyto, (columns, windows[a:b, ..., g * depth : (g + 1) * depth])))
                    if groups == 1 and out.flags.c_contiguous:
                        part += products(shaped(columns, -1, k), w[0], shaped(out, -1, per_group))
                        continue
                    part += products(shaped(columns, -1, k), w[g], result)
                    part.append((np.copyto, (target, shaped(result, *target.shape))))
        parts.append(part)
    return [*([fill] if fill else []), parts, *conv.epilogue.phases(conv.out, scratch)]


def _padded(conv: Conv, scratch: Scratch) -> tuple[Array, list[ThreadCalls]]:
    """Return the zero-padded data and the calls that fill it; the data itself without padding."""
    if not any(map(any, conv.pads)):
        return conv.x, []
    sizes = [b + n + e for n, (b, e) in zip(conv.x.shape[1:-1], conv.pads, strict=True)]
    padded = scratch.take((len(conv.x), *sizes, conv.x.shape[-1]))
    inner = tuple(slice(b, b + n) for n, (b, _) in zip(conv.x.shape[1:-1], conv.pads, strict=True))
    return padded, [[(padded.fill, (0,)), (np.copyto, (padded[(slice(None), *inner)], conv.x))]]
