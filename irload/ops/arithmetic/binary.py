"""Binary arithmetic: two operands that broadcast, one result of their type. Integers wrap, as in the reference."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.tensor import Array
from irload.errors import ExecutionError
from irload.ops.casting import to_integer
from irload.ops.elementwise import Binary


class Add(Binary, since=1):
    """a + b. Specification: Add-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a + b


class Subtract(Binary, since=1):
    """a − b. Specification: Subtract-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a - b


class Multiply(Binary, since=1):
    """a · b. Specification: Multiply-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return a * b


class SquaredDifference(Binary, since=1):
    """(a − b)². Specification: SquaredDifference-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return (a - b) ** 2


class Maximum(Binary, since=1):
    """The greater of a and b; NaN where either is. Specification: Maximum-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


class Minimum(Binary, since=1):
    """The lesser of a and b; NaN where either is. Specification: Minimum-1."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


class Power(Binary, since=1):
    """a to the power of b. Integers are computed in f64 and truncated, so that 2 to the −1 is 0.

    Specification: Power-1.
    """

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.power(a, b)
        return to_integer(np.power(a.astype(np.float64), b.astype(np.float64)), a.dtype)


class Divide(Binary, since=1):
    """a / b. Integers are floored with `m_pythondiv` (the default) and truncated without it.

    Specification: Divide-1. Raises ExecutionError for an integer divided by zero.
    """

    m_pythondiv = attr.boolean(default=True)

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return a / b
        refuse_zero(b)
        floored = a // b
        if self.m_pythondiv:
            return floored
        inexact = (a % b != 0) & ((a < 0) != (b < 0))
        return floored + inexact.astype(a.dtype)


class Mod(Binary, since=1):
    """The remainder of the truncated division, with the sign of a. Specification: Mod-1."""

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            refuse_zero(b)
        return np.fmod(a, b)


class FloorMod(Binary, since=1):
    """The remainder of the floored division, with the sign of b. Specification: FloorMod-1."""

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            refuse_zero(b)
        return np.mod(a, b)


def refuse_zero(divisor: Array) -> None:
    """Raise ExecutionError where an integer would be divided by zero."""
    if np.any(divisor == 0):
        raise ExecutionError("integer division by zero")
