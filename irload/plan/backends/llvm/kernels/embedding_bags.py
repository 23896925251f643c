"""Embedding bags: sums of rows of a table, in vector registers."""

from __future__ import annotations

from functools import cache

import numpy as np

from irload.core.tensor import Array
from irload.ops.sparse.embedding import SumRows, require_rows, sum_rows
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import AnyInt, Function, Int
from irload.plan.backends.llvm.elements import F32, I64, SIZES
from irload.plan.backends.llvm.kernel import Standalone, address
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.target import Target
from irload.record import record

_WIDTHS = (8, 4, 2)
"""Vectors of a row that are summed at a time; the vectors that are left are summed one by one."""


@record()
class BagSums(Standalone):
    """y[k] = Σ table[indices[j]] · weights[j] over j in ends[k]…ends[k + 1]. A unit is one k.

    Arguments: the table in f32, the indices and the ends in i64, the weights in f32, y, and the number of columns.
    `weighted`: whether there are weights.
    """

    weighted: bool

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        (table, indices, ends, weights, y), columns = arguments.pointers(5), arguments.integer()

        def add_rows(bag: Int, column: AnyInt, vectors: int, count: AnyInt | None = None) -> None:
            """Sum some vectors of the rows of a bag. `count`: the columns of a single vector, None for all lanes."""
            first, last = (f.load_int(ends, (bag + k) * SIZES[I64]) for k in (0, 1))
            sums = [f.zero()] * vectors
            for j in f.range(first, last, 1, sums):
                row = table + (f.load_int(indices, j * SIZES[I64]) * columns + column) * SIZES[F32]
                weight = f.broadcast(weights, j * SIZES[F32]) if self.weighted else None
                for v in range(vectors):
                    value = f.load(row, v * f.lanes * SIZES[F32], count)
                    sums[v] = sums[v] + (value if weight is None else value * weight)
            target = y + (bag * columns + column) * SIZES[F32]
            for v, total in enumerate(sums):
                f.store(total, target, v * f.lanes * SIZES[F32], count)

        for bag in f.range(f["begin"], f["end"]):
            start: AnyInt = 0
            for vectors in _WIDTHS:
                wide = vectors * f.lanes
                stop = start + (columns - start) // wide * wide
                for column in f.range(start, stop, wide):
                    add_rows(bag, column, vectors)
                start = stop
            for column in f.range(start, columns, f.lanes):
                add_rows(bag, column, 1, f.minimum(columns - column, f.lanes))


def row_summer(target: Target) -> SumRows:
    """A function that returns the same sums as `sum_rows`, by compiled code for tables of f32."""
    code = cache(lambda weighted: function(BagSums(weighted), target))

    def compiled(table: Array, indices: Array, ends: Array, weights: Array | None) -> Array:
        is_f32 = table.dtype == np.float32 and (weights is None or weights.dtype == np.float32)
        if not is_f32 or not table.flags.c_contiguous:
            return sum_rows(table, indices, ends, weights)
        positions = np.ascontiguousarray(indices, np.int64)
        require_rows(positions[ends[0] :], len(table))
        count = len(ends) - 1
        result = np.empty((count, *table.shape[1:]), np.float32)
        factors = positions if weights is None else np.ascontiguousarray(weights)
        arrays = table, positions, ends, factors, result
        numbers = np.array([*map(address, arrays), result.size // max(count, 1)], np.int64)
        call, _ = code(weights is not None)
        call(address(numbers), 0, count, None, None)
        return result

    return compiled
