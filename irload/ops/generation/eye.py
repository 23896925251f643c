"""Eye: matrices with ones on a diagonal."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, dynamic
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch


def _require_index(name: str, tensor: TensorType) -> None:
    if tensor.element not in INDEX and not tensor.element.is_dynamic:
        raise TypeMismatch(f"{name} must be of type i32 or i64, found {tensor.element}")


def _size(name: str, tensor: TensorType) -> Dim:
    """The size in a scalar (or a list of one element)."""
    if tensor.dims is None:
        return ANY
    if any(v < 0 for v in tensor.ints or ()):
        raise ShapeMismatch(f"{name} must not be negative, found {list(tensor.ints or ())}")
    return tensor.dims[0]


class Eye(Op, since=9):
    """A matrix of `num_rows` × `num_columns` with ones on a diagonal, repeated to `batch_shape`.

    Specification: Eye-9. `diagonal_index` 0 is the main diagonal, k > 0 the k-th above it, k < 0 below it.
    """

    output_type = attr.element_type(default=dynamic, spec_required=True)

    def validate(self) -> None:
        if not self.output_type.is_numeric or self.output_type is dynamic:
            raise AttributeInvalid(f"attribute output_type must be a numeric type, found {self.output_type}")

    def infer(
        self,
        num_rows: TensorType,
        num_columns: TensorType,
        diagonal_index: TensorType,
        batch_shape: TensorType | None = None,
    ) -> TensorType:
        scalars = (("num_rows", num_rows), ("num_columns", num_columns), ("diagonal_index", diagonal_index))
        for name, tensor in scalars:
            _require_index(name, tensor)
            if tensor.shape.meet(Shape()) is None and tensor.shape.meet(Shape(1)) is None:
                raise ShapeMismatch(f"{name} must be a scalar or a list of one, found {tensor.shape}")
        matrix = [_size(name, tensor) for name, tensor in scalars[:2]]
        if batch_shape is None:
            return TensorType(self.output_type, Shape(*matrix))
        _require_index("batch_shape", batch_shape)
        if batch_shape.rank not in (None, 1):
            raise ShapeMismatch(f"batch_shape must be a list (rank 1), found {batch_shape.shape}")
        if any(v < 0 for v in batch_shape.ints or ()):
            raise ShapeMismatch(f"batch_shape must not be negative, found {list(batch_shape.ints or ())}")
        if batch_shape.dims is not None:
            return TensorType(self.output_type, Shape(*batch_shape.dims, *matrix))
        if batch_shape.rank is None or not batch_shape.shape[0].is_static:
            return TensorType(self.output_type, Shape.unranked())
        return TensorType(self.output_type, Shape(*(ANY,) * batch_shape.shape[0].size, *matrix))

    def compute(
        self, num_rows: Array, num_columns: Array, diagonal_index: Array, batch_shape: Array | None = None
    ) -> Array:
        rows, columns = num_rows.item(), num_columns.item()
        batch = () if batch_shape is None else tuple(batch_shape.tolist())
        if 0 in batch:
            return np.zeros((*batch, rows, columns), self.output_type.dtype)
        matrix = np.eye(rows, columns, int(np.clip(diagonal_index.item(), -rows, columns)), self.output_type.dtype)
        return np.broadcast_to(matrix, (*batch, rows, columns)).copy()
