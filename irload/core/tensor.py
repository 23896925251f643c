"""TensorType: what is known of a tensor by inference: its element type, its shape, and where known its values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from irload.core.element import ElementType, dynamic, element_of_dtype
from irload.core.shape import ANY, UNRANKED, Dim, Shape

Array = NDArray[Any]

UNBOUNDED_LO = np.iinfo(np.int64).min
UNBOUNDED_HI = np.iinfo(np.int64).max
VALUE_LIMIT = 1 << 16
"""Values of larger tensors are not carried through inference: shapes never depend on them."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Elementwise bounds of a tensor, two arrays of its shape; the extreme integers of i64 mean unbounded.

    Those of integers are i64. Sizes that become floats, to be scaled and made integers again, have floats as bounds.
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        # NumPy gives scalars for what it calculates of arrays without axes.
        object.__setattr__(self, "lower", np.asarray(self.lower))
        object.__setattr__(self, "upper", np.asarray(self.upper))

    @staticmethod
    def of_dims(dims: Iterable[Dim]) -> Bounds:
        """The bounds of a 1-D tensor that holds these dims."""
        dims = tuple(dims)
        return Bounds(
            np.array([d.lo for d in dims], np.int64),
            np.array([UNBOUNDED_HI if d.hi is None else d.hi for d in dims], np.int64),
        )

    @property
    def is_exact(self) -> bool:
        """True when the lower and upper bound of every element are one."""
        return bool(np.array_equal(self.lower, self.upper))

    def dims(self) -> tuple[Dim, ...]:
        """The elements, flat, as dims; what is below zero is cut."""
        return tuple(
            Dim(max(int(lo), 0), None if hi == UNBOUNDED_HI else max(int(hi), 0))
            for lo, hi in zip(self.lower.ravel(), self.upper.ravel(), strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class TensorType:
    """The type of a tensor: `element`, `shape`, and its `value` (exact) or `bounds` (integers) where inferable.

    `value` must not be written to.
    """

    element: ElementType
    shape: Shape
    value: Array | None = None
    bounds: Bounds | None = None

    @staticmethod
    def of(array: Array, element: ElementType | None = None) -> TensorType:
        """The type of a known array, its value included."""
        return TensorType(element or element_of_dtype(array.dtype), Shape(*array.shape), array)

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        return self.shape.rank

    @property
    def is_static(self) -> bool:
        """True when element type and shape are both known."""
        return self.element is not dynamic and self.shape.is_static

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The elements of a tensor that holds sizes, flat, as far as they are known; None when nothing is."""
        if self.value is not None:
            return tuple(Dim(max(v, 0), max(v, 0)) for v in self.value.ravel().tolist())
        return None if self.bounds is None else self.bounds.dims()

    @property
    def ints(self) -> tuple[int, ...] | None:
        """The elements of an integer tensor, flat, or None when they are not all known."""
        return None if self.value is None else tuple(int(v) for v in self.value.ravel().tolist())

    @property
    def nbytes(self) -> int | None:
        """Bytes of the tensor as irload holds it, or None for a dynamic one. A Python int, so it never overflows."""
        size = self.shape.size
        return size.lo * self.element.dtype.itemsize if size.is_static and self.shape.rank is not None else None

    def without_value(self) -> Self:
        """The same type without its value and bounds."""
        return self if self.value is None and self.bounds is None else replace(self, value=None, bounds=None)

    def contains(self, other: TensorType) -> bool:
        """True when every tensor that `other` allows is one that this type allows."""
        return self.element in (dynamic, other.element) and self.shape.contains(other.shape)

    def __str__(self) -> str:
        return f"{self.element}{self.shape}"

    __repr__ = __str__


UNKNOWN = TensorType(dynamic, UNRANKED)
"""The type of which nothing is known."""


def length_of(tensor: TensorType) -> Dim:
    """The length of a 1-D tensor (such as a target shape), ANY when its rank is unknown. A scalar counts as one."""
    if tensor.shape.rank is None:
        return ANY
    return tensor.shape[0] if tensor.shape.rank else Dim(1, 1)


def owner_of(array: Array) -> Array:
    """The array that owns the memory which this one looks at: itself, unless it is a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
