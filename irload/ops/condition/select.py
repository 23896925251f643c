"""Select: elements of two tensors by a mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.bounds import moved, short_shape
from irload.core.element import boolean, merge
from irload.core.shape import Shape
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import TypeMismatch
from irload.ops.elementwise import AutoBroadcast


class Select(AutoBroadcast, since=1):
    """Elements of `then` where `cond` is true, of `else` where it is false.

    Specification: Select-1. `cond` is boolean, the others are of one type. All three broadcast by NumPy's rules, must
    be equal with `none`, or broadcast to the shape of `then` with `pdpd`.
    """

    widens = False

    def infer(self, cond: TensorType, then: TensorType, else_: TensorType) -> TensorType:
        if cond.element is not boolean and not cond.element.is_dynamic:
            raise TypeMismatch(f"cond must be boolean, found {cond.element}")
        element = merge(then.element, else_.element)
        if self.auto_broadcast == "pdpd":
            return TensorType(element, self._fitted(self._fitted(then.shape, else_.shape), cond.shape))
        return TensorType(element, self.joined(self.joined(else_.shape, then.shape), cond.shape))

    def _fitted(self, target: Shape, other: Shape) -> Shape:
        """The target's shape, its dims narrowed by the dims of the operand that broadcasts to it."""
        target = self.joined(target, other)
        if target.rank is None:
            return target
        start = len(target) - len(other)
        if start and self.auto_broadcast_axis >= 0:
            start = self.auto_broadcast_axis
        for axis, dim in enumerate(other, start):
            target = target.with_dim(axis, target[axis].broadcast(dim) or dim)
        return target

    def compute(self, cond: Array, then: Array, else_: Array) -> Array:
        cond = cond.astype(bool, copy=False)  # `bounds` passes the mask as integers
        if self.auto_broadcast != "pdpd":
            return np.where(cond, then, else_)
        return np.where(self.aligned(cond, then.ndim), then, self.aligned(else_, then.ndim))

    def bounds(self, cond: TensorType, *branches: TensorType) -> Sequence[Bounds | None] | None:
        chosen = None if cond.value is None else set(cond.value.flat)
        if chosen is not None and len(chosen) == 1:
            branches = tuple(t if k in chosen else _any_of(t) for k, t in zip((True, False), branches, strict=True))
        return moved(self, (cond, *branches), data=(1, 2))


def _any_of(unread: TensorType) -> TensorType:
    """Return an operand that no element is taken from, with an arbitrary value if its shape is known and small."""
    shape = short_shape(unread)
    return unread if shape is None else TensorType.of(np.zeros(shape, np.int64))
