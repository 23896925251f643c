"""Normalization by the magnitude of a neighbourhood: LRN, NormalizeL2, GRN."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.op import Op
from irload.core.shape import normalize_axes
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.elementwise import prefer_float, require_float
from irload.ops.normalization.moments import check_axes
from irload.ops.sliding import WindowAxis, reduce_windows


class LRN(Op, since=1):
    """Divides each element by (bias + alpha / size^len(axes) · Σ data²)^beta, the sum over a region around the element.

    Specification: LRN-1. The region extends (size − 1) // 2 elements to either side along each of `axes`, and is
    clipped at the edges.
    """

    alpha = attr.number(default=0.0, spec_required=True)
    beta = attr.number(default=0.0, spec_required=True)
    bias = attr.number(default=0.0, spec_required=True)
    size = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    rounds = (0,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        prefer_float("data", data.element)
        check_axes(data, axes)
        return data.without_value()

    def compute(self, data: Array, axes: Array) -> Array:
        over = sorted(set(normalize_axes(axes.ravel().tolist(), data.ndim)))
        reach, total = max(self.size - 1, 0) // 2, np.square(data)
        for axis in over:
            size = data.shape[axis]
            near = min(reach, size)
            around = WindowAxis(size, size, 2 * near + 1, begin=near)
            total = np.moveaxis(reduce_windows(np.moveaxis(total, axis, -1), [around], np.add, 0), -1, axis)
        number = data.dtype.type
        scale = number(self.alpha) / number(self.size ** len(over))
        return data / np.power(number(self.bias) + scale * total, number(self.beta))


class NormalizeL2(Op, since=1):
    """Divides by √(Σ data² + eps) over `axes`, or by √max(Σ data², eps) with eps_mode max.

    Specification: NormalizeL2-1. If `axes` is empty, the result is 1, and 0 for zeros.
    """

    eps = attr.number(default=0.0, rule=attr.advised(attr.non_negative), spec_required=True)
    eps_mode = attr.choice("add", "max", default="add", spec_required=True)

    rounds = (0,)

    def infer(self, data: TensorType, axes: TensorType) -> TensorType:
        check_axes(data, axes, ranks=(0, 1))
        # OpenVINO has kernels for 8-bit integers and these axes only; otherwise it decomposes to integer operations.
        whole = data.element.bits <= 8 and self._kernel_takes(data, axes)
        (prefer_float if whole else require_float)("data", data.element)
        return data.without_value()

    @staticmethod
    def _kernel_takes(data: TensorType, axes: TensorType) -> bool:
        """True if OpenVINO has a kernel for these axes: the channels, or all axes but the first."""
        if data.rank is None or axes.ints is None or not 2 <= data.rank <= 4:
            return False
        return sorted(set(normalize_axes(axes.ints, data.rank))) in ([1], list(range(1, data.rank)))

    def compute(self, data: Array, axes: Array) -> Array:
        over = tuple(set(normalize_axes(axes.ravel().tolist(), data.ndim)))
        if not over:
            return np.where(data == 0, data.dtype.type(0), data.dtype.type(1))
        total, eps = np.square(data).sum(axis=over, keepdims=True), data.dtype.type(self.eps)
        return data / np.sqrt(total + eps if self.eps_mode == "add" else np.maximum(total, eps))


class GRN(Op, since=1):
    """Divides by √(Σ data² + bias), the sum over the channels.

    Specification: GRN-1. Rank 2 to 4, channels on axis 1.
    """

    bias = attr.number(default=1.0, spec_required=True)
    rounds = (0,)

    def infer(self, data: TensorType) -> TensorType:
        prefer_float("data", data.element)
        if data.rank not in (None, 2, 3, 4):
            raise ShapeMismatch(f"data must have rank 2, 3 or 4, found shape {data.shape}")
        return data.without_value()

    def compute(self, data: Array) -> Array:
        return data / np.sqrt(np.square(data).sum(axis=1, keepdims=True) + data.dtype.type(self.bias))
