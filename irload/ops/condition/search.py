"""NonZero and Bucketize: search for elements by value."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch


class NonZero(Op, since=3):
    """The indices of the nonzero elements, one per column, in row-major order: [rank, count].

    Specification: NonZero-3. NaN is nonzero, −0 is zero. A scalar counts as a list of one element, and a scalar 0 gives
    the shape [0, 0].
    """

    output_type = attr.element_type(default=i64, among=INDEX)

    def infer(self, x: TensorType) -> TensorType:
        if not (x.element.is_numeric or x.element.kind == "boolean"):
            raise TypeMismatch(f"x must be numeric or boolean, found {x.element}")
        if not x.rank:  # unknown, or a scalar, whose value determines both dims
            return TensorType(self.output_type, Shape(None, None))
        return TensorType(self.output_type, Shape(x.rank, Dim(0, x.shape.size.hi)))

    def compute(self, x: Array) -> Array:
        if x.ndim == 0:
            return np.zeros((1, 1) if x else (0, 0), self.output_type.dtype)
        return np.array(np.nonzero(x), self.output_type.dtype)


class Bucketize(Op, since=3):
    """The index of the bucket that contains each element of `data`; `buckets` are the sorted boundaries.

    Specification: Bucketize-3. With `with_right_bound` a boundary belongs to the bucket below it, else to the one
    above.
    """

    output_type = attr.element_type(among=INDEX)
    with_right_bound = attr.boolean(default=True)

    def infer(self, data: TensorType, buckets: TensorType) -> TensorType:
        for name, tensor in (("data", data), ("buckets", buckets)):
            if not tensor.element.is_numeric:
                raise TypeMismatch(f"{name} must be of a numeric type, found {tensor.element}")
        if buckets.rank not in (None, 1):
            raise ShapeMismatch(f"buckets must be a list (rank 1), found {buckets.shape}")
        return TensorType(self.output_type, data.shape)

    def compute(self, data: Array, buckets: Array) -> Array:
        side = "left" if self.with_right_bound else "right"
        return np.asarray(np.searchsorted(buckets, data, side)).astype(self.output_type.dtype)
