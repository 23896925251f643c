"""AvgPool in its three versions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.pooling.pool import Pool
from irload.ops.sliding import WindowAxis, reduce_windows


class AvgPool(Pool, since=1):
    """The mean of every window.

    Specification: AvgPool-1. With `exclude-pad` the sum is divided by the number of elements inside the input, so each
    pad must be smaller than the window. Without it the sum is divided by the size of the kernel if there is any
    padding, else by the number of elements inside the input; if that is 0, the mean is zero. Integers round half to
    even.
    """

    exclude_pad = attr.boolean(default=True, name="exclude-pad", spec_required=True)

    def check_window(self, span: int, begin: int, end: int, axis: int) -> None:
        if self.exclude_pad and span <= max(begin, end):
            raise ShapeMismatch(
                f"with exclude-pad a window that spans {span} must exceed the pads, found {begin} and {end} on spatial "
                f"axis {axis}"
            )

    def infer(self, data: TensorType) -> TensorType:
        require_numeric("data", data.element)
        return TensorType(data.element, self.pooled(data.shape))

    def compute(self, data: Array) -> Array:
        sizes = data.shape[2:]
        axes = self.axes(sizes)
        wide = data if data.dtype.kind == "f" else data.astype(np.int64)
        total = reduce_windows(wide, axes, np.add, 0)
        return _divided(total, self._divisor(sizes, axes), data.dtype)

    def _divisor(self, sizes: Sequence[int], axes: list[WindowAxis]) -> Array | int:
        if not self.exclude_pad and any(n for pair in self.pads(sizes, self.kernel) for n in pair):
            return math.prod(self.kernel)
        counts = np.ones((), np.int64)
        for axis in axes:
            counts = counts[..., np.newaxis] * axis.real
        return counts


def _divided(total: Array, divisor: Array | int, dtype: np.dtype) -> Array:
    """`total / divisor` in `dtype`, zero where the divisor is zero."""
    divisor = np.maximum(np.asarray(divisor), 1)
    return total / divisor.astype(dtype) if dtype.kind == "f" else np.rint(total / divisor).astype(dtype)


class AvgPool14(AvgPool, type="AvgPool", since=14):
    """AvgPool with the additional rounding_type ceil_torch: no window starts beyond the input (AvgPool-14)."""

    rounding_type = attr.choice("floor", "ceil", "ceil_torch", default="floor")


class AvgPool16(AvgPool14, type="AvgPool", since=16):
    """AvgPool with dilations (AvgPool-16)."""

    dilations = attr.integers(default=(), rule=attr.positive)
