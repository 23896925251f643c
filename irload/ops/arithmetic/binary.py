"""Binary arithmetic with broadcasting; the result has the operands' type. Integers wrap, as in the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array, Bounds, TensorType
from irload.ops.casting import to_integer
from irload.ops.elementwise import Binary, MonotoneBinary, natural


class Add(MonotoneBinary, since=1):
    """a + b. Specification: Add-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a + b


class Subtract(MonotoneBinary, since=1):
    """a − b. Specification: Subtract-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a - b


class Multiply(MonotoneBinary, since=1):
    """a · b. Specification: Multiply-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a * b


class SquaredDifference(Binary, since=1):
    """(a − b)². Specification: SquaredDifference-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return (a - b) ** 2


class Maximum(MonotoneBinary, since=1):
    """The greater of a and b; NaN if either is NaN. Specification: Maximum-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


class Minimum(MonotoneBinary, since=1):
    """The lesser of a and b; NaN if either is NaN. Specification: Minimum-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


class Power(MonotoneBinary, since=1):
    """a to the power of b. Integers are computed in f64 and truncated, so that 2 to the −1 is 0.

    Specification: Power-1.
    """

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.power(a, b)
        return to_integer(np.power(a.astype(np.float64), b.astype(np.float64)), a.dtype)

    def bounds(self, a: TensorType, b: TensorType) -> Sequence[Bounds | None] | None:
        return None if natural(a, b) is None else super().bounds(a, b)
