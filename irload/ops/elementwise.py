"""Families of operations that work element by element: what unary and binary ones share."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import ElementType, boolean, merge
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch


def require_numeric(name: str, element: ElementType) -> None:
    """Raise TypeMismatch for a type that is neither float nor integer."""
    if not element.is_numeric:
        raise TypeMismatch(f"{name} must be of a numeric type, found {element}")


class Unary(Op):
    """One numeric input, one output of the same type and shape."""

    def infer(self, x: TensorType) -> TensorType:
        require_numeric("x", x.element)
        return x.untold()


class AutoBroadcast(Op):
    """Operations on operands that broadcast: `numpy` rules, `none` (equal shapes) or `pdpd` (b aligned in a at `axis`)."""

    auto_broadcast = attr.choice("numpy", "none", "pdpd", default="numpy")
    axis = attr.integer(default=-1)

    def joined(self, a: Shape, b: Shape) -> Shape:
        """The shape that `a` and `b` broadcast to. Raises ShapeMismatch."""
        if self.auto_broadcast == "numpy":
            return a.broadcast(b)
        if self.auto_broadcast == "none":
            met = a.meet(b)
            if met is None:
                raise ShapeMismatch(f"shapes must be equal with auto_broadcast none, found {a} and {b}")
            return met
        return self._pdpd(a, b)

    def aligned(self, b: Array, rank: int) -> Array:
        """`b` reshaped so that NumPy's broadcasting against a tensor of `rank` axes does what the attribute says."""
        if self.auto_broadcast != "pdpd" or not b.ndim:
            return b
        start = self.axis if self.axis >= 0 else rank - b.ndim
        return b.reshape(b.shape + (1,) * max(rank - start - b.ndim, 0))

    def _pdpd(self, a: Shape, b: Shape) -> Shape:
        if a.rank is None or b.rank is None:
            return Shape.unranked()
        start = self.axis if self.axis >= 0 else len(a) - len(b)
        dims = list(b.dims)
        while dims and start + len(dims) > len(a) and dims[-1] == Shape(1)[0]:
            dims.pop()  # trailing ones may stick out
        if start < 0 or start + len(dims) > len(a):
            raise ShapeMismatch(f"shape {b} does not fit into {a} at axis {start} (auto_broadcast pdpd)")
        for k, dim in enumerate(dims):
            if a[start + k].meet(dim) is None and not dim.contains(1):
                raise ShapeMismatch(f"shape {b} does not fit into {a} at axis {start} (auto_broadcast pdpd)")
        return a


class Binary(AutoBroadcast):
    """Two operands of one numeric type, one output of that type and the broadcast shape."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        element = merge(a.element, b.element)
        require_numeric("a and b", element)
        return TensorType(element, self.joined(a.shape, b.shape))

    def compute(self, a: Array, b: Array) -> Array:
        return np.asarray(self.apply(a, self.aligned(b, a.ndim)))

    def apply(self, a: Array, b: Array) -> Array:
        """The operation itself, on operands that broadcast by NumPy's rules."""
        raise NotImplementedError


class Comparison(AutoBroadcast):
    """Two operands of one type, a boolean output of the broadcast shape."""

    def infer(self, a: TensorType, b: TensorType) -> TensorType:
        merge(a.element, b.element)
        return TensorType(boolean, self.joined(a.shape, b.shape))

    def compute(self, a: Array, b: Array) -> Array:
        return np.asarray(self.apply(a, self.aligned(b, a.ndim)))

    def apply(self, a: Array, b: Array) -> Array:
        """The comparison itself, on operands that broadcast by NumPy's rules."""
        raise NotImplementedError
