"""OneHot, in both versions."""

from __future__ import annotations

import math

import numpy as np

from irload.core import attribute as attr
from irload.core.element import dynamic, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axis
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.ports import as_i64


class OneHot(Op, since=1):
    """Adds an axis of length `depth`, with `on_value` at the index and `off_value` elsewhere.

    Specification: OneHot-1. `axis` is the position of the new axis in the output. An index outside 0…depth − 1 gives
    only `off_value`. `depth`, `on_value` and `off_value` are scalars.
    """

    axis = attr.integer(default=0, spec_required=True)

    widens = False

    def infer(self, indices: TensorType, depth: TensorType, on_value: TensorType, off_value: TensorType) -> TensorType:
        for name, tensor in (("indices", indices), ("depth", depth)):
            if not (tensor.element.is_integer or tensor.element is dynamic):
                raise TypeMismatch(f"{name} must be of an integer type, found {tensor.element}")
        element = merge(on_value.element, off_value.element)
        for name, tensor in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
            if tensor.rank not in (None, 0):
                raise ShapeMismatch(f"{name} must be a scalar, found {tensor.shape}")
        known = depth.ints
        if known is not None and known[0] < 0:
            raise ShapeMismatch(f"depth must not be negative, found {known[0]}")
        if indices.rank is None:
            return TensorType(element, Shape.unranked())
        axis = normalize_axis(self.axis, indices.rank + 1)
        dims = list(indices.shape)
        dims.insert(axis, _length(depth))
        return TensorType(element, Shape(*dims))

    def compute(self, indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        axis, length = normalize_axis(self.axis, indices.ndim + 1), max(int(depth), 0)
        before, after = indices.shape[:axis], indices.shape[axis:]
        positions = as_i64(self.positions_of(indices, length)).reshape(math.prod(before), math.prod(after))
        result = np.full((len(positions), length, positions.shape[1]), off_value)
        row, column = np.nonzero((positions >= 0) & (positions < length))
        result[row, positions[row, column], column] = on_value
        return result.reshape(*before, length, *after)

    def positions_of(self, indices: Array, depth: int) -> Array:
        """The position of each index on the new axis."""
        return indices


class OneHot16(OneHot, type="OneHot", since=16):
    """OneHot with an option for negative indices to count from the end.

    Specification: OneHot-16. With `negative_indices_mode` `normalize`, −1 is the last position; indices below −depth
    still give only `off_value`.
    """

    negative_indices_mode = attr.choice("ignore_negative", "normalize", default="ignore_negative")

    def positions_of(self, indices: Array, depth: int) -> Array:
        if self.negative_indices_mode == "ignore_negative" or indices.dtype.kind == "u":
            return indices
        wide = indices.astype(np.int64)
        return np.where(wide < 0, wide + depth, wide)


def _length(depth: TensorType) -> Dim:
    dims = depth.dims
    return dims[0] if dims is not None and len(dims) == 1 else ANY
