"""ShapeOf: the shape of a tensor as a tensor."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, ElementType, i64
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.size import array_of
from irload.core.tensor import Array, Bounds, TensorType


class ShapeOf(Op, since=1):
    """The shape of `data` as a 1-D tensor of i64 (ShapeOf-1). Folded if the shape is static."""

    @property
    def index_type(self) -> ElementType:
        """The element type of the output."""
        return self.attributes.get("output_type", i64)

    def infer(self, data: TensorType) -> TensorType:
        shape = data.shape
        if shape.rank is None:
            return TensorType(self.index_type, Shape(None))
        out = Shape(shape.rank)
        if shape.is_static:
            return TensorType(self.index_type, out, array_of(shape.static, self.index_type.dtype))
        return TensorType(self.index_type, out, bounds=Bounds.of_dims(shape))

    def compute(self, data: Array) -> Array:
        return np.array(data.shape, self.index_type.dtype)


class ShapeOf3(ShapeOf, type="ShapeOf", since=3):
    """ShapeOf with `output_type` i64 or i32 (ShapeOf-3)."""

    output_type = attr.element_type(among=INDEX)
