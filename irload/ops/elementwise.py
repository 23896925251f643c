"""Base classes of elementwise operations: unary, binary and comparisons, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import ClassVar

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import bounds_of
from irload.core.element import ElementType, boolean, merge, string
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import Dim, Shape
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch, TypeMismatch
from irload.ops.casting import to_integer


def require_numeric(name: str, element: ElementType) -> None:
    """Raise TypeMismatch for a type that is neither float nor integer."""
    if not element.is_numeric:
        raise TypeMismatch(f"{name} must be of a numeric type, found {element}")


def require_float(name: str, element: ElementType) -> None:
    """Raise TypeMismatch unless the type is a float."""
    if not (element.is_float or element.is_dynamic):
        raise TypeMismatch(f"{name} must be of a floating-point type, found {element}")


def prefer_float(name: str, element: ElementType) -> None:
    """Raise TypeMismatch for strings. Operations that round (`Op.rounds`) accept other types with a remark."""
    if element is string:
        require_float(name, element)
    if element.is_integer or element is boolean:
        remark(
            f"{name} must be of a floating-point type by the specification, found {element}; it is computed in f32 "
            f"and rounded"
        )


class Unary(Op):
    """One numeric input, one output of the same type and shape."""

    def infer(self, x: TensorType) -> TensorType:
        require_numeric("x", x.element)
        return x.without_value()


class FloatUnary(Op):
    """One floating-point input, one output of the same type and shape."""

    def infer(self, x: TensorType) -> TensorType:
        (prefer_float if self.rounds else require_float)("x", x.element)
        return x.without_value()


class UnaryFunction(Unary):
    """A function of real numbers, element by element. Integers are computed in f64 and converted back."""

    truncates: ClassVar[bool] = False
    """On integers: truncate the result towards zero instead of rounding it to nearest."""

    def compute(self, x: Array) -> Array:
        if x.dtype.kind == "f":
            return np.asarray(self.function(x))
        y = self.function(x.astype(np.float64))
        return to_integer(y if self.truncates else np.rint(y), x.dtype)

    def function(self, x: Array) -> Array:
        """The function itself, on floats."""
        raise NotImplementedError


class AutoBroadcast(Op):
    """Operations with broadcast operands.

    `auto_broadcast`: `numpy` rules, `none` (equal shapes), or `pdpd` (b is aligned with a at axis
    `auto_broadcast_axis`, −1: at the end, and only b is broadcast).
    """

    auto_broadcast = attr.choice("numpy", "none", "pdpd", default="numpy", aliases={"explicit": "none"})
    auto_broadcast_axis = attr.integer(default=0, name="auto_broadcast.auto_broadcast_axis")

    def validate(self) -> None:
        if self.auto_broadcast_axis < -1 and self.auto_broadcast == "pdpd":
            raise AttributeInvalid(
                f"attribute auto_broadcast_axis must be at least -1, found {self.auto_broadcast_axis}"
            )

    def joined(self, a: Shape, b: Shape) -> Shape:
        """The shape that `a` and `b` broadcast to. Raises ShapeMismatch."""
        if self.auto_broadcast_axis < -1:
            remark(
                f"attribute auto_broadcast_axis must be at least -1 by the specification, found "
                f"{self.auto_broadcast_axis}; it has no effect with auto_broadcast {self.auto_broadcast}"
            )
        if self.auto_broadcast == "numpy":
            return a.broadcast(b)
        if self.auto_broadcast == "none":
            met = a.meet(b)
            if met is None:
                raise ShapeMismatch(f"shapes must be equal with auto_broadcast none, found {a} and {b}")
            return met
        return self._pdpd(a, b)

    def aligned(self, b: Array, rank: int) -> Array:
        """`b` reshaped so that NumPy broadcasts it as the attribute specifies against a tensor of `rank` axes."""
        if self.auto_broadcast != "pdpd" or b.ndim == rank:
            return b
        start = rank - b.ndim if self.auto_broadcast_axis == -1 else self.auto_broadcast_axis
        return b.reshape(b.shape + (1,) * (rank - start - b.ndim))

    def _pdpd(self, a: Shape, b: Shape) -> Shape:
        if a.rank is None or b.rank is None:
            return Shape.unranked()
        start = len(a) - len(b) if self.auto_broadcast_axis == -1 else self.auto_broadcast_axis
        dims = list(a)
        fits = 0 <= start <= len(a) - len(b)
        # Unlike in NumPy, a dim of 1 does not broadcast to an empty axis.
        fits = fits and all(
            (y.contains(1) and x != Dim(0, 0)) or x.meet(y) is not None for x, y in zip(a[start:], b, strict=False)
        )
        if not fits:
            raise ShapeMismatch(f"shape {b} does not fit into {a} at axis {start} (auto_broadcast pdpd)")
        for k, dim in enumerate(b, start):
            dims[k] = dims[k].broadcast(dim) or dims[k]
        return Shape(*dims)


class Broadcasting(AutoBroadcast):
    """Two broadcast operands; subclasses define `apply`."""

    def compute(self, a: Array, b: Array) -> Array:
        return np.asarray(self.apply(a, self.aligned(b, a.ndim)))

    def apply(self, a: Array, b: Array) -> Array:
        """The operation on operands that broadcast by NumPy's rules."""
        raise NotImplementedError


class Binary(Broadcasting):
    """Two operands of one numeric type, one output of that type and the broadcast shape."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element = merge(a.element, b.element)
        require_numeric("a and b", element)
        return TensorType(element, self.joined(a.shape, b.shape))

    def open_ends(self, a: Bounds, b: Bounds) -> Array:
        """True for elements of the result with an unbounded operand."""
        of_a, of_b = ((x.upper == UNBOUNDED_HI) | (x.lower == UNBOUNDED_LO) for x in (a, b))
        return np.asarray(of_a | self.aligned(of_b, of_a.ndim))


class MonotoneBinary(Binary):
    """A binary operation that is monotone in each operand, so that its extremes are at the operands' bounds."""

    def bounds(self, a: TensorType, b: TensorType) -> Sequence[Bounds | None] | None:
        left, right = bounds_of(a), bounds_of(b)
        if left is None or right is None:
            return None
        ends = product((left.lower, left.upper), (right.lower, right.upper))
        with np.errstate(all="ignore"):
            corners = np.stack([self.compute(x, y) for x, y in ends])
        # As in OpenVINO, an operand without upper bound leaves only the bounds of a size: 0..∞.
        is_open = self.open_ends(left, right)
        return [Bounds(np.where(is_open, 0, corners.min(0)), np.where(is_open, UNBOUNDED_HI, corners.max(0)))]


def natural(a: TensorType, b: TensorType) -> tuple[Bounds, Bounds] | None:
    """The bounds of two operands if both are known and non-negative, as sizes are; otherwise None."""
    left, right = bounds_of(a), bounds_of(b)
    if left is None or right is None or np.any(left.lower < 0) or np.any(right.lower < 0):
        return None
    return left, right


class BinaryComparison(Broadcasting):
    """Two operands of one type, a boolean output of the broadcast shape."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        merge(a.element, b.element)
        return TensorType(boolean, self.joined(a.shape, b.shape))
