"""Comparisons of two operands with broadcasting. NaN is unequal to every value, including NaN."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.ops.elementwise import BinaryComparison


class Equal(BinaryComparison, since=1):
    """a = b. Specification: Equal-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.equal(a, b).astype(bool)


class NotEqual(BinaryComparison, since=1):
    """a ≠ b. Specification: NotEqual-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.not_equal(a, b).astype(bool)


class Less(BinaryComparison, since=1):
    """a < b. Specification: Less-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a < b


class LessEqual(BinaryComparison, since=1):
    """a ≤ b. Specification: LessEqual-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a <= b


class Greater(BinaryComparison, since=1):
    """a > b. Specification: Greater-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a > b


class GreaterEqual(BinaryComparison, since=1):
    """a ≥ b. Specification: GreaterEqual-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a >= b
