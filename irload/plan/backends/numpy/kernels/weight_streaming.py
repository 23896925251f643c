"""MatMul of a few dozen rows with large weights: outᵀ = weights @ aᵀ, which reads the weights once, in order.

The data is transposed into columns that stay in cache. Loading the weights, in stored order and unpacked, overlaps with
arithmetic.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.small_gemm import products
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.measured import (
    BUFFERED_ELEMENTS,
    ELEMENTS,
    HEIGHTS,
    LANES,
    PACKED_STREAMED_ROWS,
    PRODUCTS,
    RESIDENT,
    STREAMED_ROWS,
    WORK,
)
from irload.plan.threads import ThreadCalls
from irload.system.blas import small_kernels


def suits(rows: int, k: int, n: int) -> bool:
    """True if weight streaming is the fastest way to multiply [rows,K] by constant weights."""
    if not small_kernels():
        return rows in PACKED_STREAMED_ROWS
    return rows in STREAMED_ROWS and k * n > RESIDENT


def stream_weights(a: Array, w: Array, out: Array, epilogue: Epilogue, scratch: Scratch) -> Phases:
    """out[M,N] = epilogue(a[M,K] @ wᵀ, …) for weights stored as [N,K]. Threads share the rows of the weights."""
    rows, n = out.shape
    k = w.shape[1]
    lanes = -(-rows // LANES) * LANES if small_kernels() else rows
    panel, fill = _turned(a, lanes, scratch) if small_kernels() else (a.T, [])
    pieces = cut(k, -(-HEIGHTS[-1] * k * lanes // WORK) if small_kernels() else 1)
    wide = epilogue.broadcast(out.shape)
    step = max(BUFFERED_ELEMENTS // lanes // HEIGHTS[0], 1) * HEIGHTS[0]
    parts: list[ThreadCalls] = []
    for start, stop in cut(n, scratch.share(rows * w.size, PRODUCTS)):
        part: ThreadCalls = []
        # A few padding elements per row avoid cache conflicts between the columns that are read.
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


def _turned(a: Array, lanes: int, scratch: Scratch) -> tuple[Array, list[ThreadCalls]]:
    """Return aᵀ as one zero-padded panel [1, K, lanes], and the calls that fill it."""
    rows, k = a.shape
    panel = scratch.take((1, k, lanes))
    parts: list[ThreadCalls] = []
    for first, last in cut(k, scratch.share(a.size, ELEMENTS)):
        part: ThreadCalls = [(panel[0, first:last, rows:].fill, (0,))] if lanes > rows else []
        part.append((np.copyto, (panel[0, first:last, :rows], a[:, first:last].T)))
        parts.append(part)
    return panel, parts
