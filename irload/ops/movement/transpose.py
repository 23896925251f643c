"""Transpose: permutation of axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.bounds import moved
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, Bounds, TensorType, length_of
from irload.errors import ShapeMismatch
from irload.ops.ports import require_integer, require_rank


class Transpose(Op, since=1):
    """Permutes the axes of `arg` to the order `input_order`; an empty order reverses them.

    Specification: Transpose-1. The order must be a permutation of 0..rank−1.
    """

    widens = False

    def infer(self, arg: TensorType, input_order: TensorType) -> TensorType:
        require_integer(input_order=input_order)
        require_rank("input_order", input_order, 1)
        count = length_of(input_order)
        if arg.rank is not None and not count.contains(0) and count.meet(Dim(arg.rank, arg.rank)) is None:
            raise ShapeMismatch(
                f"input_order must be empty or have one value for each of {arg.rank} axes, found {count}"
            )
        order = input_order.ints
        if arg.rank is None:
            return TensorType(arg.element, Shape.any(len(order) if order else None))
        if order is None:
            return TensorType(arg.element, Shape.any(arg.rank))
        order = order or tuple(reversed(range(arg.rank)))
        if sorted(order) != list(range(arg.rank)):
            raise ShapeMismatch(f"input_order {list(order)} is not a permutation of the axes of {arg.shape}")
        return TensorType(arg.element, Shape(*(arg.shape[k] for k in order)))

    def compute(self, arg: Array, input_order: Array) -> Array:
        return np.transpose(arg, input_order.tolist() or None)

    def bounds(self, arg: TensorType, input_order: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, (arg, input_order))
