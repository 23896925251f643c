"""Matmul of a few dozen rows with large weights: outᵀ = weights @ aᵀ, so that the weights pass through once, in order.

The data is turned into columns that stay in cache. Weights that come from memory are read in their own order,
while others are being multiplied, and need no laying out.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.blas import small_kernels
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.small_gemm import products
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.measured import (
    ELEMENTS,
    HEIGHTS,
    LANES,
    PRODUCTS,
    RESIDENT,
    SMALL_M,
    SMALL_M_COPIED,
    WAITING,
    WORK,
)
from irload.plan.threads import Part


def suits(rows: int, k: int, n: int) -> bool:
    """True where it is the fastest way to multiply [rows,K] with constant weights."""
    if not small_kernels():
        return rows in SMALL_M_COPIED
    return rows in SMALL_M and k * n > RESIDENT


def stream_weights(
    a: Array, w: Array, out: Array, epilogue: Epilogue, scratch: Scratch, threads: int
) -> list[list[Part]]:
    """out[M,N] = epilogue(a[M,K] @ wᵀ, …) for weights stored [N,K]. Threads share it by rows of the weights."""
    rows, n = out.shape
    k = w.shape[1]
    lanes = -(-rows // LANES) * LANES if small_kernels() else rows
    panel, fill = _turned(a, lanes, scratch, threads) if small_kernels() else (a.T, [])
    pieces = cut(k, -(-HEIGHTS[-1] * k * lanes // WORK) if small_kernels() else 1)
    wide = epilogue.broadcast(out.shape)
    step = max(WAITING // lanes // HEIGHTS[0], 1) * HEIGHTS[0]
    parts: list[Part] = []
    for start, stop in cut(n, scratch.share(threads, rows * w.size, PRODUCTS)):
        part: Part = []
        # A few more elements a row keep the columns, along which they are read, apart in cache.
        turned, more = scratch.take((2, min(step, stop - start), lanes + LANES))[..., :lanes]
        for i, j in cut_range(start, stop, step):
            block, target = turned[: j - i], out[:, i:j]
            for first, last in pieces:
                result = more[: j - i] if first else block
                part += products(w[i:j, first:last], panel[..., first:last, :], result)
                part += [(np.add, (block, result, block))] if first else []
            part.append((np.copyto, (target, block[:, :rows].T)))
            part += wide[:, i:j].calls(target, scratch)
        parts.append(part)
    return [fill, parts]


def _turned(a: Array, lanes: int, scratch: Scratch, threads: int) -> tuple[Array, list[Part]]:
    """aᵀ as one panel [1, K, lanes], filled up with zeros, and the calls that make it."""
    rows, k = a.shape
    panel = scratch.take((1, k, lanes))
    parts: list[Part] = []
    for first, last in cut(k, scratch.share(threads, a.size, ELEMENTS)):
        part: Part = [(panel[0, first:last, rows:].fill, (0,))] if lanes > rows else []
        part.append((np.copyto, (panel[0, first:last, :rows], a[:, first:last].T)))
        parts.append(part)
    return panel, parts
