"""Bitwise and, or, xor, not, and shifts of integers. The first four are logical on booleans."""

from __future__ import annotations

import numpy as np

from irload.core.element import ElementType, boolean, merge
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.errors import TypeMismatch
from irload.ops.elementwise import Broadcasting


def require_bits(name: str, element: ElementType) -> None:
    """Raise TypeMismatch unless the type is integer or boolean."""
    if not (element.is_integer or element.is_dynamic or element is boolean):
        raise TypeMismatch(f"{name} must be of an integer type or boolean, found {element}")


class BinaryBitwise(Broadcasting):
    """Two operands of one integer type (or boolean), one output of that type and the broadcast shape."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element = merge(a.element, b.element)
        require_bits("a and b", element)
        return TensorType(element, self.joined(a.shape, b.shape))


class BitwiseAnd(BinaryBitwise, since=13):
    """The bits set in both a and b. Specification: BitwiseAnd-13."""

    def apply(self, a: Array, b: Array) -> Array:
        return a & b


class BitwiseOr(BinaryBitwise, since=13):
    """The bits set in a or b. Specification: BitwiseOr-13."""

    def apply(self, a: Array, b: Array) -> Array:
        return a | b


class BitwiseXor(BinaryBitwise, since=13):
    """The bits set in exactly one of a and b. Specification: BitwiseXor-13."""

    def apply(self, a: Array, b: Array) -> Array:
        return a ^ b


class BitwiseNot(Op, since=13):
    """The bits not set in x. Specification: BitwiseNot-13."""

    def infer(self, x: TensorType) -> TensorType:
        require_bits("x", x.element)
        return x.without_value()

    def compute(self, x: Array) -> Array:
        return np.invert(x)


class Shift(Broadcasting):
    """Shifts of integers. Counts outside 0..width − 1 are undefined; irload shifts all bits out."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element = merge(a.element, b.element)
        if not (element.is_integer or element.is_dynamic):
            raise TypeMismatch(f"a and b must be of an integer type, found {element}")
        return TensorType(element, self.joined(a.shape, b.shape))


class BitwiseLeftShift(Shift, since=15):
    """a shifted left by b bits. Specification: BitwiseLeftShift-15."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.left_shift(a, b)


class BitwiseRightShift(Shift, since=15):
    """a shifted right by b bits; signed types are sign-extended. Specification: BitwiseRightShift-15."""

    def apply(self, a: Array, b: Array) -> Array:
        return np.right_shift(a, b)
