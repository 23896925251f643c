"""Division and remainders. Integers are divided exactly; integer division by zero is an error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.tensor import UNBOUNDED_HI, Array, Bounds, TensorType
from irload.errors import ExecutionError
from irload.ops.elementwise import Binary, natural


class Divide(Binary, since=1):
    """a / b. Integers are floored with `m_pythondiv` (the default), otherwise truncated.

    Specification: Divide-1. Raises ExecutionError for integer division by zero.
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

    def bounds(self, a: TensorType, b: TensorType) -> Sequence[Bounds | None] | None:
        both = natural(a, b)
        if both is None:
            return None
        left, right = both
        is_open, with_zero = self.open_ends(left, right), self.aligned(right.lower == 0, left.lower.ndim)
        low, high = (np.where(x == 0, 1, x).astype(x.dtype) for x in (right.lower, right.upper))
        with np.errstate(over="ignore"):  # unbounded ends may overflow; their results are replaced
            lower, upper = self.compute(left.lower, high), self.compute(left.upper, low)
        return [Bounds(np.where(is_open, 0, lower), np.where(is_open | with_zero, UNBOUNDED_HI, upper))]


class Remainder(Binary):
    """The remainder of a division; subclasses define its rounding."""

    def bounds(self, a: TensorType, b: TensorType) -> Sequence[Bounds | None] | None:
        both = natural(a, b)
        if both is None or a.element.is_float:
            return None
        left, right = both
        is_open = self.open_ends(left, right)
        divisor = Bounds(*(self.aligned(np.maximum(x, 1), left.lower.ndim) for x in (right.lower, right.upper)))
        known = (left.lower == left.upper) & (divisor.lower == divisor.upper)
        value, below = left.lower % divisor.lower, left.upper < divisor.lower
        lower = np.where(known, value, np.where(below, left.lower, 0))
        upper = np.where(known, value, np.minimum(left.upper, divisor.upper - 1))
        return [Bounds(np.where(is_open, 0, lower), np.where(is_open, UNBOUNDED_HI, upper))]


class Mod(Remainder, since=1):
    """The remainder of the truncated division, a − trunc(a / b) · b, with the sign of a. Specification: Mod-1.

    The quotient of floats is rounded before truncation, so that 0.3 is a multiple of 0.1, as in OpenVINO.
    """

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            refuse_zero(b)
            return np.fmod(a, b)
        return a - np.trunc(a / b) * b


class FloorMod(Remainder, since=1):
    """The remainder of the floored division, with the sign of b. Specification: FloorMod-1."""

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind != "f":
            refuse_zero(b)
            return np.mod(a, b)
        wide, divisor = a.astype(np.float64), b.astype(np.float64)
        return (wide - np.floor(wide / divisor) * divisor).astype(a.dtype)


def refuse_zero(divisor: Array) -> None:
    """Raise ExecutionError if an integer divisor is zero."""
    if np.any(divisor == 0):
        raise ExecutionError("integer division by zero")
