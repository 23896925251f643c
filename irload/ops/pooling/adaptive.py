"""Adaptive pooling: windows that follow from a given output size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.pooling.maximum import lowest
from irload.ops.windows import NON_SPATIAL, check_spatial


class AdaptivePool(Op):
    """Window i of an axis is the range from floor(i · in / out) to ceil((i + 1) · in / out), exclusive."""

    def pooled(self, data: TensorType, output_shape: TensorType) -> TensorType:
        """The pooled tensor. Raises ShapeMismatch or TypeMismatch."""
        require_numeric("data", data.element)
        if output_shape.element not in INDEX and not output_shape.element.is_dynamic:
            raise TypeMismatch(f"output_shape must be i32 or i64, found {output_shape.element}")
        check_spatial("data", data.shape)
        if output_shape.rank not in (None, 1):
            raise ShapeMismatch(f"output_shape must have rank 1, found shape {output_shape.shape}")
        if data.rank is None:
            return TensorType(data.element, Shape.unranked())
        spatial = data.rank - NON_SPATIAL
        if output_shape.rank == 1 and not output_shape.shape[0].contains(spatial):
            raise ShapeMismatch(f"output_shape must have {spatial} values for data {data.shape}")
        return TensorType(data.element, Shape(*data.shape[:NON_SPATIAL], *self._output_dims(output_shape, spatial)))

    @staticmethod
    def _output_dims(output_shape: TensorType, spatial: int) -> Sequence[Dim]:
        if output_shape.ints is not None and min(output_shape.ints, default=0) < 0:
            raise ShapeMismatch(f"output_shape must not be negative, found {list(output_shape.ints)}")
        return (ANY,) * spatial if output_shape.dims is None else output_shape.dims


def bins(size: int, count: int) -> tuple[list[tuple[int, int]], Array]:
    """(start, stop) of the distinct windows among `count` over `size` elements, and for each window its index.

    At most twice as many windows as elements are distinct, for any count. Raises ExecutionError for an empty axis.
    """
    if size == 0 and count:
        raise ExecutionError("an axis without elements cannot be pooled")
    at = np.arange(count, dtype=np.int64)
    starts, stops = at * size // max(count, 1), -(-(at + 1) * size // max(count, 1))
    keys, which = np.unique(starts * (size + 1) + stops, return_inverse=True)
    return [divmod(k, size + 1) for k in keys.tolist()], which.reshape(-1)


class AdaptiveAvgPool(AdaptivePool, since=8):
    """The mean of every window, for a given output size.

    Specification: AdaptiveAvgPool-8. data has 1 to 3 spatial axes, output_shape one value for each. Integers truncate.
    """

    def infer(self, data: TensorType, output_shape: TensorType) -> TensorType:
        return self.pooled(data, output_shape)

    def compute(self, data: Array, output_shape: Array) -> Array:
        total, count = (data if data.dtype.kind == "f" else data.astype(np.int64)), np.ones((), np.int64)
        for axis, counts in enumerate(output_shape.tolist(), NON_SPATIAL):
            windows, which = bins(data.shape[axis], counts)
            ends = [total.take(range(a, b), axis).sum(axis, keepdims=True) for a, b in windows]
            total = np.concatenate(ends, axis).take(which, axis) if ends else total.take([], axis)
            count = count[..., np.newaxis] * np.array([b - a for a, b in windows], np.int64)[which]
        if data.dtype.kind == "f":
            return total / count.astype(data.dtype)
        return np.trunc(total / count).astype(data.dtype)


class AdaptiveMaxPool(AdaptivePool, since=8):
    """The maximum of every window, and the flat spatial index of its first occurrence.

    Specification: AdaptiveMaxPool-8. NaN is ignored, as in MaxPool: a window of NaN only gives the lowest value.
    """

    index_element_type = attr.element_type(default=i64, among=INDEX)

    def infer(self, data: TensorType, output_shape: TensorType) -> tuple[TensorType, TensorType]:
        pooled = self.pooled(data, output_shape)
        return pooled, TensorType(self.index_element_type, pooled.shape)

    def compute(self, data: Array, output_shape: Array) -> tuple[Array, Array]:
        sizes = data.shape[NON_SPATIAL:]
        values = np.fmax(data, data.dtype.type(lowest(data.dtype)))
        indices = np.broadcast_to(np.arange(math.prod(sizes)).reshape(sizes), data.shape)
        counts = output_shape.tolist()
        # The last axis goes first, so that the first of equal elements in memory is selected.
        for axis in reversed(range(NON_SPATIAL, data.ndim)):
            best: list[Array] = []
            positions: list[Array] = []
            windows, which = bins(data.shape[axis], counts[axis - NON_SPATIAL])
            for start, stop in windows:
                some = values.take(range(start, stop), axis)
                at = some.argmax(axis, keepdims=True)
                best.append(np.take_along_axis(some, at, axis))
                positions.append(np.take_along_axis(indices.take(range(start, stop), axis), at, axis))
            values = np.concatenate(best, axis).take(which, axis) if best else values.take([], axis)
            indices = np.concatenate(positions, axis).take(which, axis) if positions else indices.take([], axis)
        return values, indices.astype(self.index_element_type.dtype)
