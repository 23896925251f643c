"""Tests for finite, infinite and NaN values."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import boolean
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.ops.elementwise import require_float


class Classification(Op):
    """One floating-point input, a boolean output of its shape."""

    def infer(self, x: TensorType) -> TensorType:
        require_float("x", x.element)
        return TensorType(boolean, x.shape)


class IsFinite(Classification, since=10):
    """False for infinities and NaN, otherwise true. Specification: IsFinite-10."""

    def compute(self, x: Array) -> Array:
        return np.isfinite(x)


class IsInf(Classification, since=10):
    """True for infinities of the signs that `detect_negative` and `detect_positive` select.

    Specification: IsInf-10.
    """

    detect_negative = attr.boolean(default=True)
    detect_positive = attr.boolean(default=True)

    def compute(self, x: Array) -> Array:
        return ((x == -np.inf) & self.detect_negative) | ((x == np.inf) & self.detect_positive)


class IsNaN(Classification, since=10):
    """True for NaN. Specification: IsNaN-10."""

    def compute(self, x: Array) -> Array:
        return np.isnan(x)
