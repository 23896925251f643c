"""Binary arithmetic: two operands that broadcast, one result of their type. Integers wrap, as in the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import monotone
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import ExecutionError
from irload.ops.elementwise import Binary


class Add(Binary, since=1):
    """a + b."""

    def apply(self, a: Array, b: Array) -> Array:
        return a + b

    def bounds(self, a: TensorType, b: TensorType) -> Sequence[Bounds | None] | None:
        return monotone(a, b, lambda x, y: x + y)


class Subtract(Binary, since=1):
    """a − b."""

    def apply(self, a: Array, b: Array) -> Array:
        return a - b

    def bounds(self, a: TensorType, b: TensorType) -> Sequence[Bounds | None] | None:
        return monotone(a, b, lambda x, y: x - y, falls_in_b=True)


class Multiply(Binary, since=1):
    """a · b."""

    def apply(self, a: Array, b: Array) -> Array:
        return a * b


class Divide(Binary, since=1):
    """a / b. Integers are floored with `m_pythondiv` (the default) and truncated without it."""

    m_pythondiv = attr.boolean(default=True)

    def apply(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return a / b
        if np.any(b == 0):
            raise ExecutionError("integer division by zero")
        floored = a // b
        if self.m_pythondiv:
            return floored
        inexact = (a % b != 0) & ((a < 0) != (b < 0))
        return (floored + inexact).astype(a.dtype)
