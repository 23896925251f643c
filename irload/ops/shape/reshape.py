"""Reshape: the same elements in the same order with another shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import bounds_of, moved
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.size import alike
from irload.core.tensor import UNBOUNDED_HI, Array, Bounds, TensorType, length_of
from irload.errors import ShapeMismatch
from irload.ops.ports import require_integer, require_rank

ZERO, ONE = Dim(0, 0), Dim(1, 1)


class Reshape(Op, since=1):
    """`data` with the shape `shape`, in which one −1 stands for the size that preserves the number of elements.

    Specification: Reshape-1. With `special_zero` a 0 copies the dim of the data at the same index, else it is a size.
    For empty data, −1 is the quotient of the dims other than a 0 that both have at the same index, so that [0,-1,4]
    keeps the dims of [0,3,4]; if another 0 is left, −1 is 1.
    """

    special_zero = attr.boolean(default=False, spec_required=True)

    widens = False

    def infer(self, data: TensorType, shape: TensorType) -> TensorType:
        require_integer(shape=shape)
        require_rank("shape", shape, 1)
        known = bounds_of(shape)
        if known is None:
            length = length_of(shape)
            return TensorType(data.element, Shape.any(length.size if length.is_static else None))
        return TensorType(data.element, self._resolved(data.shape, _pattern(known)))

    def _resolved(self, data: Shape, pattern: list[Dim | None]) -> Shape:
        """The output shape; None in the pattern stands for −1."""
        copied = {k for k, d in enumerate(pattern) if d == ZERO and (self.special_zero or _is_zero(data, k))}
        if data.rank is None:
            rest = ANY if copied else Dim(1, None)
            return Shape(*(ANY if k in copied else rest if d is None else d for k, d in enumerate(pattern)))
        if any(k >= data.rank for k in copied):
            raise ShapeMismatch(f"shape {_shown(pattern)} copies more dims than data {data} has")
        dims = [data[k] if k in copied else d for k, d in enumerate(pattern)]
        source, others = _without_common(
            [d for k, d in enumerate(data) if k not in copied],
            [d for k, d in enumerate(pattern) if d is not None and k not in copied],
        )
        if None in dims:
            complaint = f"data {data} cannot take shape {_shown(pattern)}"
            empty = any(data[k] == ZERO for k in copied)
            dims[dims.index(None)] = _missing(source, others, complaint, empty=empty)
        result = Shape(*(ANY if d is None else d for d in dims))
        if data.is_static and result.is_static and None not in pattern and data.size != result.size:
            raise ShapeMismatch(f"data {data} has {data.size} elements, shape {_shown(pattern)} has {result.size}")
        return result

    def compute(self, data: Array, shape: Array) -> Array:
        target = (shape.view(np.int64) if shape.dtype == np.uint64 else shape).tolist()  # a u64 may stand for −1
        if self.special_zero:
            target = [data.shape[k] if n == 0 else n for k, n in enumerate(target)]
        if -1 in target and not data.size:  # NumPy rejects −1 as ambiguous for empty arrays
            target = list(self._resolved(Shape(*data.shape), [None if n == -1 else Dim.of(n) for n in target]).static)
        return data.reshape(target)

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)


def _pattern(known: Bounds) -> list[Dim | None]:
    """The target as dims, None for −1. Raises ShapeMismatch for other negative sizes or a second −1."""
    result: list[Dim | None] = []
    for low, high in zip(known.lower.ravel().tolist(), known.upper.ravel().tolist(), strict=True):
        if low == high == -1:
            result.append(None)
        elif high < 0:
            raise ShapeMismatch(f"shape must hold sizes, 0 or -1, found {low}")
        else:
            result.append(ANY if low < 0 else Dim(low, None if high == UNBOUNDED_HI else high))
    if result.count(None) > 1:
        raise ShapeMismatch(f"shape may hold one -1, found {_shown(result)}")
    return result


def _is_zero(data: Shape, index: int) -> bool:
    return data.rank is not None and index < data.rank and data[index] == ZERO


def _without_common(source: list[Dim], target: list[Dim]) -> tuple[list[Dim], list[Dim]]:
    """Both lists without their common static dims, which cancel out."""
    left, rest = list[Dim](), list(target)
    for dim in source:
        same = next((k for k, d in enumerate(rest) if d.is_static and alike(d.lo, dim.lo)), None)
        if dim.is_static and dim.lo and same is not None:
            del rest[same]
        else:
            left.append(dim)
    return left, rest


def _missing(source: Sequence[Dim], target: Sequence[Dim], complaint: str, *, empty: bool) -> Dim:
    """The dim for −1: the number of elements divided by the product of the other dims; `empty`: a copied dim is 0."""
    have, need = _product(source), _product(target)
    if need == ZERO:
        if have.lo and not empty:
            raise ShapeMismatch(f"{complaint}: with a dim of 0, -1 needs empty data")
        return ONE if all(d.is_static for d in source) else ANY
    if have.is_static and need.is_static:
        if have.lo % need.lo:
            raise ShapeMismatch(f"{complaint}: {have} elements cannot be divided by {need}")
        return Dim(have.lo // need.lo, have.lo // need.lo)
    high = None if have.hi is None or not need.lo else have.hi // need.lo
    low = min(have.lo, 1) if need.hi is None else -(-have.lo // need.hi)
    return Dim(low, high)


def _product(dims: Iterable[Dim]) -> Dim:
    return reduce(Dim.__mul__, dims, ONE)


def _shown(pattern: Sequence[Dim | None]) -> str:
    return f"[{','.join('-1' if d is None else str(d) for d in pattern)}]"
