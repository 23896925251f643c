"""Comparisons of two operands that broadcast. NaN is unequal to everything, itself included."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.ops.elementwise import Comparison


class Equal(Comparison, since=1):
    """a = b. Specification: Equal-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.equal(a, b).astype(bool)


class NotEqual(Comparison, since=1):
    """a ≠ b. Specification: NotEqual-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.not_equal(a, b).astype(bool)


class Less(Comparison, since=1):
    """a < b. Specification: Less-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a < b


class LessEqual(Comparison, since=1):
    """a ≤ b. Specification: LessEqual-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a <= b


class Greater(Comparison, since=1):
    """a > b. Specification: Greater-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a > b


class GreaterEqual(Comparison, since=1):
    """a ≥ b. Specification: GreaterEqual-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a >= b
