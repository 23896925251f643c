"""Unique: the distinct elements or slices of a tensor."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.ports import known_axis, require_element


class Unique(Op, since=10):
    """The distinct elements of `data`, or with `axis` its distinct slices along it.

    Specification: Unique-10. Outputs: the values; the index of their first occurrence; for each element (or slice) of
    the data the index of its value; the number of occurrences. Ascending if `sorted`, else in order of first
    occurrence.
    """

    sorted = attr.boolean(default=True)
    index_element_type = attr.element_type(default=i64, among=INDEX)
    count_element_type = attr.element_type(default=i64, among=INDEX)

    def infer(self, data: TensorType, axis: TensorType | None = None) -> tuple[TensorType, ...]:
        total = data.shape.size if data.shape.is_static else ANY
        distinct, members = (Dim(1, total.hi), total) if total.is_static and total.hi else (ANY, ANY)
        values = Shape(Dim(min(1, total.size), total.size) if total.is_static else ANY)
        if axis is not None:
            values = Shape.unranked()
            require_element("axis", axis, *INDEX)
            along = known_axis(axis, data.rank)
            if along is None:
                raise ShapeMismatch("axis must be a constant")
            if data.rank is not None:
                members = data.shape[along]
                least = 0 if members in (ANY, Dim(0, 0)) else 1
                values = data.shape.with_dim(along, Dim(least, members.hi))
                if members == Dim(0, 0):
                    distinct = members
        return (
            TensorType(data.element, values),
            TensorType(self.index_element_type, Shape(distinct)),
            TensorType(self.index_element_type, Shape(members)),
            TensorType(self.count_element_type, Shape(distinct)),
        )

    def compute(self, data: Array, axis: Array | None = None) -> tuple[Array, ...]:
        along = None if axis is None else int(axis.reshape(())) % data.ndim
        values, first, inverse, counts = np.unique(
            data, return_index=True, return_inverse=True, return_counts=True, axis=along
        )
        inverse = inverse.reshape(-1)
        if not self.sorted:
            order = np.argsort(first)
            values, first, counts = values.take(order, along or 0), first[order], counts[order]
            inverse = np.argsort(order)[inverse]
        index, count = self.index_element_type.dtype, self.count_element_type.dtype
        return values, first.astype(index), inverse.astype(index), counts.astype(count)
