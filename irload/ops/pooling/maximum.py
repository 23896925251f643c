"""MaxPool in its three versions; the later ones also return the index of the maximum."""

from __future__ import annotations

import math

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.shape import normalize_axis
from irload.core.tensor import Array, TensorType
from irload.ops.elementwise import require_numeric
from irload.ops.pooling.pool import Pool
from irload.ops.sliding import over_windows, padded, reduce_windows
from irload.ops.windows import NON_SPATIAL


def lowest(dtype: np.dtype) -> float | int:
    """The lowest finite value of a dtype: the maximum of a window that is all padding."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


class MaxPool(Pool, since=1):
    """The maximum of every window, ignoring padding and NaN.

    Specification: MaxPool-1. A window that is all padding gives the lowest finite value.
    """

    def infer(self, data: TensorType) -> TensorType:
        require_numeric("data", data.element)
        return TensorType(data.element, self.pooled(data.shape))

    def compute(self, data: Array) -> Array:
        fill = lowest(data.dtype)
        return reduce_windows(np.fmax(data, data.dtype.type(fill)), self.axes(data.shape[2:]), np.maximum, fill)


class MaxPool8(MaxPool, type="MaxPool", since=8):
    """MaxPool with dilations and a second output: the flat index of the first maximum of every window.

    Specification: MaxPool-8. The index counts the elements of the input from `axis` on.
    """

    dilations = attr.integers(default=(), rule=attr.positive)
    index_element_type = attr.element_type(default=i64, among=INDEX)
    axis = attr.integer(default=0)

    def infer(self, data: TensorType) -> tuple[TensorType, TensorType]:
        require_numeric("data", data.element)
        shape = self.pooled(data.shape)
        if data.rank is not None:
            normalize_axis(self.axis, data.rank)
        return TensorType(data.element, shape), TensorType(self.index_element_type, shape)

    def compute(self, data: Array) -> tuple[Array, Array]:
        fill = data.dtype.type(lowest(data.dtype))
        values, axes = padded(np.fmax(data, fill), self.axes(data.shape[2:]), fill)
        indices = np.arange(math.prod(data.shape[NON_SPATIAL:])).reshape(1, 1, *data.shape[NON_SPATIAL:])
        indices, _ = padded(indices, self.axes(data.shape[2:]), 0)
        both = values, np.broadcast_to(indices, values.shape)
        # The last axis goes first, so that the first of equal elements in memory is selected.
        for k in reversed(range(len(axes))):
            both = over_windows(both, NON_SPATIAL + k, axes[k], _first_largest)
        values, indices = both
        # In a window of lowest values no element exceeds `fill`: its index is the first element of the channel.
        return values, self._flat(np.where(values > fill, indices, 0), data.shape)

    def _flat(self, indices: Array, shape: tuple[int, ...]) -> Array:
        """Indices within a channel, converted to count from `axis` on."""
        channels = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *(1,) * (len(shape) - NON_SPATIAL))
        flat = channels * math.prod(shape[NON_SPATIAL:]) + indices
        counted = math.prod(shape[normalize_axis(self.axis, len(shape)) :])
        return (flat % counted).astype(self.index_element_type.dtype)


def _first_largest(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    """The larger of two values, with its index; of equal values the first. Overwrites the first pair."""
    better = b[0] > a[0]
    for mine, other in zip(a, b, strict=True):
        np.copyto(mine, other, where=better)
    return a


class MaxPool14(MaxPool8, type="MaxPool", since=14):
    """MaxPool with the additional rounding_type ceil_torch: no window starts beyond the input (MaxPool-14)."""

    rounding_type = attr.choice("floor", "ceil", "ceil_torch", default="floor")
