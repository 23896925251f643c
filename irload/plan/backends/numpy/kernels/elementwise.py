"""Expressions over operands that broadcast, tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.instructions import TilePool, expression_calls
from irload.plan.backends.numpy.kernels.tiles import by_memory, collapse, cut, tiles
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.measured import ELEMENTS
from irload.plan.ir.expression import Expression
from irload.plan.threads import Part


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of an expression. What is constant may be read, and copied, when calls are made."""

    array: Array
    is_constant: bool = False


def elementwise_parts(
    expression: Expression, operands: Sequence[Operand], out: Array, scratch: Scratch, threads: int
) -> list[Part]:
    """The calls, a part for each thread, that compute `expression` of `operands` into `out`."""
    views = [np.broadcast_to(o.array, out.shape) for o in operands]
    arrays = collapse(by_memory([out, *views], out)) if out.ndim else [out, *views]
    if arrays[0].ndim == 0:
        return [expression_calls(expression, arrays[1:], arrays[0], _pool(arrays[0], scratch))]
    wide = [Operand(a, o.is_constant) for a, o in zip(arrays[1:], operands, strict=True)]
    rows = arrays[0].shape[0]
    # A first axis shorter than the number of threads is no use for cutting.
    ranges = cut(rows, scratch.share(threads, out.size, ELEMENTS))
    return [tiled_calls(expression, wide, arrays[0], a, b, scratch) for a, b in ranges]


def tiled_calls(
    expression: Expression, operands: Sequence[Operand], out: Array, start: int, stop: int, scratch: Scratch
) -> Part:
    """The calls for the rows start..stop, in tiles. All arrays have one shape; operands may have strides of zero."""
    calls: Part = []
    pools: dict[tuple[int, ...], TilePool] = {}
    repeated: dict[tuple[int, tuple[int, ...]], Array] = {}
    rows: dict[int, int] = {}
    for tile in tiles([out, *(o.array for o in operands)], start, stop, scratch.tile):
        shape = tile[0].shape
        pool = pools.get(shape)
        if pool is None:
            pool = pools[shape] = _pool(tile[0], scratch)
        ready: list[Array] = []
        for k, (operand, array) in enumerate(zip(operands, tile[1:], strict=True)):
            # Only the row that comes first is written out: others might be as many as there are tiles.
            first = operand.is_constant and _is_row(array) and rows.setdefault(k, _address(array)) == _address(array)
            if first and (k, shape) not in repeated:
                repeated[k, shape] = frozen(np.ascontiguousarray(array))
            ready.append(repeated[k, shape] if first else _thin(array))
        calls += expression_calls(expression, ready, tile[0], pool)
    return calls


def _is_row(array: Array) -> bool:
    """True for one row repeated down a tile. Written out in full it is added in half the time."""
    return array.ndim == 2 and array.strides[0] == 0 and array.shape[0] > 1 and array.strides[1] == array.itemsize


def _address(array: Array) -> int:
    """Where the first element lies."""
    return array.__array_interface__["data"][0]


def _pool(like: Array, scratch: Scratch) -> TilePool:
    return TilePool(lambda: scratch.take(like.shape))


def _thin(array: Array) -> Array:
    """A broadcast operand without its repeated rows: NumPy repeats them itself, and faster."""
    index = tuple(
        slice(0, 1) if s == 0 and n > 1 else slice(None) for s, n in zip(array.strides, array.shape, strict=True)
    )
    return array[index]
