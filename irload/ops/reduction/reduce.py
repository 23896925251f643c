"""Reductions along axes. With an empty list of axes every reduction is the identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from irload.core import attribute as attr
from irload.core import element as et
from irload.core.bounds import bounds_of
from irload.core.element import ElementType
from irload.core.op import Op
from irload.core.shape import Dim, Shape, normalize_axis
from irload.core.size import number
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType, array_of
from irload.errors import ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.ports import require_element, require_integer

Axes = tuple[int, ...]


class Reduction(Op):
    """Reduces `x` along `axes` (scalar or 1-D; negative ones count from the end, repeated ones count once).

    With `keep_dims` the reduced axes keep length 1, else they are dropped.
    """

    keep_dims = attr.boolean(default=False)

    def infer(self, x: TensorType, axes: TensorType) -> TensorType:
        self.check_element(x.element)
        require_integer(axes=axes)
        if axes.rank not in (None, 0, 1):
            raise ShapeMismatch(f"axes must be a scalar or 1-D, found shape {axes.shape}")
        return TensorType(x.element, self._reduced(x.shape, axes))

    def check_element(self, element: ElementType) -> None:
        """Raise TypeMismatch for a type that this reduction does not support."""
        require_numeric("x", element)

    def _reduced(self, shape: Shape, axes: TensorType) -> Shape:
        rank, known = shape.rank, axes.ints
        if rank is None:
            return Shape.unranked()
        if known is not None:
            reduced = set(_counted(known, rank))
            dims = [Dim(1, 1) if k in reduced else d for k, d in enumerate(shape) if self.keep_dims or k not in reduced]
            return Shape(*dims)
        if self.keep_dims:
            return Shape.any(rank)
        # One axis removes one dim. Several unknown axes may be equal, so the rank is unknown.
        return Shape.any(max(rank - 1, 0)) if axes.shape.size == Dim(1, 1) else Shape.unranked()

    def compute(self, x: Array, axes: Array) -> Array:
        return self.reduce(x, _counted(axes.ravel().tolist(), x.ndim)) if axes.size else x

    def reduce(self, x: Array, axes: Axes) -> Array:
        """The reduction along `axes`, or of one element if x is a scalar. The result is of x's dtype."""
        raise NotImplementedError


def _counted(axes: Sequence[int], rank: int) -> Axes:
    """The axes counted from the front, without duplicates. A scalar may be reduced along axis 0, as in OpenVINO."""
    front = {normalize_axis(int(a), rank, "axis", scalar_axis=True) for a in axes}
    return tuple(sorted(front)) if rank else ()


def _bounded(op: Reduction, x: TensorType, axes: TensorType, reduce: Callable[..., Any]) -> list[Bounds | None] | None:
    """Bounds of a reduction that is monotone in every element. Unbounded ends are infinities."""
    known, reduced = bounds_of(x), axes.ints
    if known is None or reduced is None or known.lower.dtype.kind == "f":
        return None
    along = _counted(reduced, known.lower.ndim)
    with np.errstate(invalid="ignore"):
        ends = [
            reduce(_extended(values), axis=along, keepdims=op.keep_dims) if along else _extended(values)
            for values in (known.lower, known.upper)
        ]
        arrays = (np.asarray(end, object) for end in ends)
        lower, upper = (array_of(map(_finite, end.flat), np.int64).reshape(end.shape) for end in arrays)
    return [Bounds(lower, upper)]


def _extended(values: Array) -> Array:
    result = values.astype(object)
    result[values == UNBOUNDED_HI] = np.inf
    result[values == UNBOUNDED_LO] = -np.inf
    return result


def _finite(value: float) -> int:
    if value != value:  # 0 · ∞: the product is 0 for any other size
        return 0
    return UNBOUNDED_HI if value >= UNBOUNDED_HI else UNBOUNDED_LO if value <= UNBOUNDED_LO else number(value)


class ReduceSum(Reduction, since=1):
    """Sum of the elements; 0 if empty. Integers wrap."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.sum(x, axes, dtype=x.dtype, keepdims=self.keep_dims)

    def bounds(self, x: TensorType, axes: TensorType) -> Sequence[Bounds | None] | None:
        return _bounded(self, x, axes, np.sum)


class ReduceProd(Reduction, since=1):
    """Product of the elements; 1 if empty. Integers wrap."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.prod(x, axes, dtype=x.dtype, keepdims=self.keep_dims)

    def bounds(self, x: TensorType, axes: TensorType) -> Sequence[Bounds | None] | None:
        known = bounds_of(x)
        if known is None or known.lower.min(initial=0) < 0:
            return None  # a product is monotone only if no factor is negative
        return _bounded(self, x, axes, np.prod)


class ReduceMean(Reduction, since=1):
    """Mean of the elements; 0 if empty. Of integers, the wrapped sum divided by the count, truncated towards zero."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        count = max(prod(x.shape[a] for a in axes), 1)
        total = np.sum(x, axes, dtype=x.dtype, keepdims=self.keep_dims)
        return divide_truncating(total, np.array(count))


def divide_truncating(total: Array, count: Array) -> Array:
    """The quotient total / count in the dtype of `total`; of integers, truncated towards zero. Counts are positive."""
    if total.dtype.kind == "f":
        return np.asarray(total / count.astype(total.dtype))
    floored = total // count
    return np.asarray(floored + ((total % count != 0) & (total < 0))).astype(total.dtype)


class ReduceMax(Reduction, since=1):
    """Maximum ignoring NaN, but at least the lowest finite number of the type, as in OpenVINO."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.fmax.reduce(x, axes, keepdims=self.keep_dims, initial=_limits(x).min)

    def bounds(self, x: TensorType, axes: TensorType) -> Sequence[Bounds | None] | None:
        return _bounded(self, x, axes, np.max)


class ReduceMin(Reduction, since=1):
    """Minimum ignoring NaN; if empty, the highest number of the type: infinity for floats."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        greatest = np.inf if x.dtype.kind == "f" else _limits(x).max
        return np.fmin.reduce(x, axes, keepdims=self.keep_dims, initial=greatest)

    def bounds(self, x: TensorType, axes: TensorType) -> Sequence[Bounds | None] | None:
        return _bounded(self, x, axes, np.min)


def _limits(x: Array) -> Any:
    return np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)


class ReduceL1(Reduction, since=4):
    """Sum of the absolute values."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.sum(np.abs(x), axes, dtype=x.dtype, keepdims=self.keep_dims)


class ReduceL2(Reduction, since=4):
    """Square root of the sum of squares; of integers, truncated."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.asarray(np.sqrt(np.sum(x * x, axes, dtype=x.dtype, keepdims=self.keep_dims))).astype(x.dtype)


class LogicalReduction(Reduction):
    """Reductions of booleans."""

    def check_element(self, element: ElementType) -> None:
        require_element("x", TensorType(element, Shape.unranked()), et.boolean)


class ReduceLogicalAnd(LogicalReduction, since=1):
    """True if all elements are true, or if there are none."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.all(x, axes, keepdims=self.keep_dims)


class ReduceLogicalOr(LogicalReduction, since=1):
    """True if any element is true."""

    def reduce(self, x: Array, axes: Axes) -> Array:
        return np.any(x, axes, keepdims=self.keep_dims)
