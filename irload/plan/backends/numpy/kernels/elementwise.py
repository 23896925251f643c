"""Expressions over broadcast operands, computed tile by tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.instructions import TilePool, expression_calls
from irload.plan.backends.numpy.kernels.tiles import by_memory, collapse, cut, tiles
from irload.plan.backends.numpy.measured import ELEMENTS
from irload.plan.ir.expression import Expression
from irload.plan.threads import ThreadCalls


def elementwise_parts(
    expression: Expression, operands: Sequence[Array], out: Array, scratch: Scratch
) -> list[ThreadCalls]:
    """Return the calls, one part per thread, that compute `expression` of `operands` into `out`."""
    views = [np.broadcast_to(o, out.shape) for o in operands]
    arrays = collapse(by_memory([out, *views], out)) if out.ndim else [out, *views]
    if arrays[0].ndim == 0:
        return [expression_calls(expression, arrays[1:], arrays[0], _pool(arrays[0], scratch))]
    rows = arrays[0].shape[0]
    # A first axis shorter than the number of threads cannot be divided among them.
    ranges = cut(rows, scratch.share(out.size, ELEMENTS))
    return [tiled_calls(expression, arrays[1:], arrays[0], a, b, scratch) for a, b in ranges]


def tiled_calls(
    expression: Expression, operands: Sequence[Array], out: Array, start: int, stop: int, scratch: Scratch
) -> ThreadCalls:
    """Return the calls for rows start..stop, in tiles. All arrays have one shape; operands may have zero strides."""
    calls: ThreadCalls = []
    pools: dict[tuple[int, ...], TilePool] = {}
    for tile in tiles([out, *operands], start, stop, scratch.tile):
        shape = tile[0].shape
        pool = pools.get(shape)
        if pool is None:
            pool = pools[shape] = _pool(tile[0], scratch)
        calls += expression_calls(expression, [_thin(operand) for operand in tile[1:]], tile[0], pool)
    return calls


def _pool(like: Array, scratch: Scratch) -> TilePool:
    return TilePool(lambda: scratch.take(like.shape))


def _thin(array: Array) -> Array:
    """Return an operand with length 1 along axes of stride 0: NumPy's broadcasting is faster than repeated rows."""
    index = tuple(
        slice(0, 1) if s == 0 and n > 1 else slice(None) for s, n in zip(array.strides, array.shape, strict=True)
    )
    return array[index]
