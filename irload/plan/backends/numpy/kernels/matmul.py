"""MatMul with an epilogue applied to blocks of rows while they are in cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.small_gemm import products
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.measured import BLOCK, PRODUCTS
from irload.plan.threads import ThreadCalls


def rows_by_matrix(a: Array, b: Array, out: Array, epilogue: Epilogue, scratch: Scratch) -> Phases:
    """out[M,N] = epilogue(a[M,K] @ b), where `b` is [K,N] or panels. Threads share the rows."""
    rows, columns = out.shape
    wide = epilogue.broadcast(out.shape)
    parts: list[ThreadCalls] = []
    for start, stop in cut(rows, scratch.share(rows * columns * a.shape[1], PRODUCTS)):
        part: ThreadCalls = []
        step = max(32, max(BLOCK, scratch.tile) // columns) if epilogue else stop - start
        for i, j in cut_range(start, stop, step):
            part += products(a[i:j], b, out[i:j])
            part += wide[i:j].calls(out[i:j], scratch)
        parts.append(part)
    return [parts]


def columns_by_matrix(a: Array, b: Array, out: Array, epilogue: Epilogue, scratch: Scratch) -> Phases:
    """`rows_by_matrix` for few rows. Threads share the columns, so each reads a part of the weights."""
    wide = epilogue.broadcast(out.shape)
    pieces, width = (b.shape[1], 1) if b.ndim == 2 else (len(b), b.shape[2])
    parts: list[ThreadCalls] = []
    for i, j in cut(pieces, scratch.share(max(len(a), 8) * b.size, PRODUCTS)):
        columns = slice(i * width, j * width)
        target = out[:, columns]
        part = products(a, b[:, i:j] if b.ndim == 2 else b[i:j], target)
        parts.append(part + wide[:, columns].calls(target, scratch))
    return [parts]


def batched(a: Array, b: Array, out: Array, epilogue: Epilogue, scratch: Scratch) -> Phases:
    """MatMul of stacks of matrices, then the epilogue, in two phases. Threads share the first axis."""
    lead = out.shape[:-2]
    a, b = np.broadcast_to(a, lead + a.shape[-2:]), np.broadcast_to(b, lead + b.shape[-2:])
    ranges = cut(lead[0], scratch.threads) if out.size * a.shape[-1] >= PRODUCTS else [(0, lead[0])]
    parts: list[ThreadCalls] = [[(np.matmul, (a[i:j], b[i:j], out[i:j]))] for i, j in ranges]
    return [parts, *epilogue.phases(out, scratch)]


def by_expert(a: Array, counts: Array, products: Sequence[Callable[[Array, Array], object]], out: Array) -> None:
    """Multiply the rows of each expert, `counts` of them in sequence. `products`: write their product to an array."""
    start = 0
    for count, product in zip(counts.tolist(), products, strict=True):
        if count:
            product(a[start : start + count], out[start : start + count])
        start += count
