"""SparseFillEmptyRows: adds an entry to each empty row of a sparse matrix."""

from __future__ import annotations

import numpy as np

from irload.core.element import INDEX, boolean, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.ports import require_element, require_rank


class SparseFillEmptyRows(Op, since=16):
    """Adds `default_value` at column 0 of every empty row of a sparse matrix.

    The matrix is `values` [M] at `indices` [M, 2] (row, column) in `dense_shape` [2]. Outputs: the indices and the
    values in row-major order, and for each row whether it was empty.
    """

    widens = False

    def infer(
        self, values: TensorType, dense_shape: TensorType, indices: TensorType, default_value: TensorType
    ) -> tuple[TensorType, TensorType, TensorType]:
        for name, port in (("dense_shape", dense_shape), ("indices", indices)):
            require_element(name, port, *INDEX)
        index = merge(dense_shape.element, indices.element)
        element = merge(values.element, default_value.element)
        require_rank("values", values, 1)
        require_rank("default_value", default_value, 0)
        if dense_shape.shape.meet(Shape(2)) is None:
            raise ShapeMismatch(f"dense_shape must hold two sizes, found shape {dense_shape.shape}")
        count = ANY if values.rank is None else values.shape[0]
        if indices.shape.meet(Shape(count, 2)) is None:
            raise ShapeMismatch(
                f"indices must hold a row and a column for each of {count} values, found shape {indices.shape}"
            )
        rows, filled = self._counts(dense_shape, indices)
        listed = ANY if indices.rank is None else indices.shape[0]
        return (
            TensorType(index, Shape(ANY if filled is None else listed + filled, 2)),
            TensorType(element, Shape(ANY if filled is None else count + filled)),
            TensorType(boolean, Shape(rows)),
        )

    def _counts(self, dense_shape: TensorType, indices: TensorType) -> tuple[Dim, int | None]:
        """The number of rows, and the number of empty rows if the indices are known."""
        sizes = dense_shape.ints
        if sizes is None:
            return ANY, None
        if min(sizes) < 0:
            raise ShapeMismatch(f"dense_shape must not be negative, found {list(sizes)}")
        rows = Dim(sizes[0], sizes[0])
        if indices.value is None:
            return rows, None
        wrong = _outside(indices.value, sizes)
        if wrong:
            raise ShapeMismatch(wrong)
        return rows, sizes[0] - len(np.unique(indices.value[:, 0]))

    def compute(
        self, values: Array, dense_shape: Array, indices: Array, default_value: Array
    ) -> tuple[Array, Array, Array]:
        wrong = _outside(indices, dense_shape.tolist())
        if wrong:
            raise ExecutionError(wrong)
        empty = np.ones(dense_shape[0], bool)
        empty[indices[:, 0]] = False
        added = np.flatnonzero(empty).astype(indices.dtype)
        coordinates = np.concatenate([indices, np.stack([added, np.zeros_like(added)], 1)])
        entries = np.concatenate([values, np.full(len(added), default_value, values.dtype)])
        order = np.lexsort((coordinates[:, 1], coordinates[:, 0]))
        return coordinates[order], entries[order], empty


def _outside(indices: Array, sizes: tuple[int, ...] | list[int]) -> str | None:
    wrong = np.any((indices < 0) | (indices >= np.array(sizes)), axis=1)
    return f"index {indices[wrong][0].tolist()} is outside the dense shape {list(sizes)}" if wrong.any() else None
