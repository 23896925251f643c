"""Reductions of ScatterElementsUpdate: sums, products and extrema of updates, at indices along an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.ops.movement.scatter import ReduceAlong, normalize_indices, reduce_along
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import DTYPES, F32, INTEGERS, SIZES, element_of
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Standalone, address
from irload.plan.backends.llvm.library import function
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import expression_of
from irload.record import record

_EXPRESSIONS = {
    "sum": expression_of("add"),
    "mean": expression_of("add"),
    "prod": expression_of("multiply"),
    "min": expression_of("minimum"),
    "max": expression_of("maximum"),
}
_INDICES = {DTYPES[element] for element in INTEGERS}
_NUMBERS = {DTYPES[F32], *_INDICES}


@record()
class ScatterReduction(Standalone):
    """y[b, i[b, j, w], w] = y[b, i[b, j, w], w] ∘ updates[b, j, w], for each j in order. A unit is one b.

    Arguments: y, the updates, the indices, an i64 that becomes 1 if an index is out of range, the length of the axis of
    y, the numbers of j and w, and the strides of the indices along b, j and w in bytes; other arrays are contiguous.
    `index`: bytes of an index; `by_slices`: whether the index is equal for all w.
    """

    element: str
    reduction: str
    index: int
    by_slices: bool

    def write(self, function: Function) -> None:
        f, arguments = function, Arguments(function)
        y, updates, indices, failed = arguments.pointers(4)
        size, count, width, *strides = arguments.integers(6)
        row = width * SIZES[self.element]

        def at_index(entry: Pointer, reduce: Callable[[AnyInt], None]) -> None:
            """Emit code for the offset of the row with an index, which is skipped if the index is out of range."""
            signed = f.load_int(entry, element=f"i{8 * self.index}")
            index = f.integer(signed + (signed < 0).as_int() * size)
            with f.when(index.below(size)):
                reduce(index * row)
            with f.otherwise():
                f.store_scalar(1, failed)

        for b in f.range(f["begin"], f["end"]):
            target, source, entries = y + b * (size * row), updates + b * (count * row), indices + b * strides[0]
            for j in f.range(0, count):
                values, entry = source + j * row, entries + j * strides[1]
                if self.by_slices:
                    at_index(entry, lambda offset: self._reduce_row(f, target + offset, values, width))
                    continue
                for w in f.range(0, width):
                    column = w * SIZES[self.element]
                    at_index(
                        entry + w * strides[2],
                        lambda offset: self._reduce_scalar(f, target + offset + column, values + column),
                    )

    def _reduce_row(self, f: Function, y: Pointer, updates: Pointer, width: Int) -> None:
        whole = width - width % f.lanes
        for w in f.range(0, whole, f.lanes):
            self._reduce(f, y, updates, w, None)
        with f.when(whole < width):
            self._reduce(f, y, updates, whole, width - whole)

    def _reduce(self, f: Function, y: Pointer, updates: Pointer, first: AnyInt, count: AnyInt | None) -> None:
        """Reduce a vector of adjacent elements, or its first `count` lanes."""
        size, offset = SIZES[self.element], first * SIZES[self.element]
        values = [read(f, pointer, offset, size, count, self.element) for pointer in (y, updates)]
        write(f, evaluate(_EXPRESSIONS[self.reduction], values)[0], y, offset, size, count, self.element)

    def _reduce_scalar(self, f: Function, y: Pointer, update: Pointer) -> None:
        loaded = [f.load_scalar(pointer, 0, self.element) for pointer in (y, update)]
        values = [Vec(f, scalar.text, scalar.type) for scalar in loaded]  # an i64 is loaded as an Int
        f.store_scalar(evaluate(_EXPRESSIONS[self.reduction], values)[0], y)


def along_reducer(target: Target) -> ReduceAlong:
    """A function that gives the same results as `reduce_along`, by compiled code for f32, i32 and i64."""
    code = cache(lambda *kind: function(ScatterReduction(*kind), target))

    def compiled(result: Array, indices: Array, updates: Array, axis: int, reduction: str) -> None:
        before, size, after = result.shape[:axis], result.shape[axis], result.shape[axis + 1 :]
        count, width = indices.shape[axis], prod(after)
        is_supported = result.dtype in _NUMBERS and indices.dtype in _INDICES and indices.size > 0
        if not is_supported or indices.shape != (*before, count, *after):
            reduce_along(result, indices, updates, axis, reduction)
            return
        entries = indices.reshape(prod(before), count, width)
        if width > 1 and entries.strides[2] and (entries == entries[:, :, :1]).all():
            entries = np.broadcast_to(entries[:, :, :1], entries.shape)
        by_slices = width > 1 and not entries.strides[2]
        call, _ = code(element_of(result), reduction, indices.itemsize, by_slices)
        values, failed = np.ascontiguousarray(updates, result.dtype), np.zeros(1, np.int64)
        pointers = map(address, (result, values, entries, failed))
        numbers = np.array([*pointers, size, count, width, *entries.strides], np.int64)
        call(address(numbers), 0, len(entries), None, None)
        if failed[0]:
            normalize_indices(indices, size)  # raises the error

    return compiled
