"""Matmul with an epilogue that runs on blocks of rows while they are in cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import TILE, Part, Scratch
from irload.plan.backends.numpy.kernels.elementwise import map_parts, tiled_calls
from irload.plan.backends.numpy.kernels.small_gemm import products
from irload.plan.backends.numpy.kernels.tiles import PRODUCTS, cut, cut_range
from irload.plan.ir.expression import Expression

BLOCK = 4 * TILE
"""Elements of the result that are made before the epilogue runs over them; as many as a tile has where that is more."""


def rows_by_matrix(
    a: Array, b: Array, out: Array, extra: Sequence[Array], epilogue: Expression, scratch: Scratch, threads: int
) -> list[list[Part]]:
    """out[M,N] = epilogue(a[M,K] @ b, …), cut by rows; `b` is [K,N] or panels. `extra` broadcast to out's shape."""
    rows, columns = out.shape
    wide = [np.broadcast_to(e, out.shape) for e in extra]
    parts: list[Part] = []
    for start, stop in cut(rows, scratch.share(threads, rows * columns * a.shape[1], PRODUCTS)):
        part: Part = []
        step = max(32, max(BLOCK, scratch.tile) // columns) if epilogue.instructions else stop - start
        for i, j in cut_range(start, stop, step):
            part += products(a[i:j], b, out[i:j])
            part += tiled_calls(epilogue, [out, *wide], out, i, j, scratch) if epilogue.instructions else []
        parts.append(part)
    return [parts]


def columns_by_matrix(
    a: Array, b: Array, out: Array, extra: Sequence[Array], epilogue: Expression, scratch: Scratch, threads: int
) -> list[list[Part]]:
    """The same cut by columns: for few rows, where each thread takes a share of the weights."""
    wide = [np.broadcast_to(e, out.shape) for e in extra]
    pieces, width = (b.shape[1], 1) if b.ndim == 2 else (len(b), b.shape[2])
    parts: list[Part] = []
    for i, j in cut(pieces, scratch.share(threads, max(len(a), 8) * b.size, PRODUCTS)):
        columns = slice(i * width, j * width)
        target, operands = out[:, columns], [w[:, columns] for w in wide]
        part = products(a, b[:, i:j] if b.ndim == 2 else b[i:j], target)
        if epilogue.instructions:
            part += tiled_calls(epilogue, [target, *operands], target, 0, len(target), scratch)
        parts.append(part)
    return [parts]


def batched(
    a: Array, b: Array, out: Array, extra: Sequence[Array], epilogue: Expression, scratch: Scratch, threads: int
) -> list[list[Part]]:
    """Matmul of stacks, cut along the first axis. Two phases: the product, then the epilogue."""
    lead = out.shape[:-2]
    a, b = np.broadcast_to(a, lead + a.shape[-2:]), np.broadcast_to(b, lead + b.shape[-2:])
    ranges = cut(lead[0], threads) if out.size * a.shape[-1] >= PRODUCTS else [(0, lead[0])]
    phases: list[list[Part]] = [[[(np.matmul, (a[i:j], b[i:j], out[i:j]))] for i, j in ranges]]
    if epilogue.instructions:
        phases.append(map_parts(epilogue, [out, *extra], out, scratch, threads))
    return phases
