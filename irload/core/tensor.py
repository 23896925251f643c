"""TensorType: the result of inference for a tensor: element type, shape, and values if they are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from irload.core.element import ElementType, dynamic, element_of_dtype
from irload.core.shape import ANY, UNRANKED, Dim, Shape, shape_of
from irload.core.size import array_of, number

Array = NDArray[Any]

UNBOUNDED_LO = np.iinfo(np.int64).min
UNBOUNDED_HI = np.iinfo(np.int64).max
VALUE_LIMIT = 1 << 16
"""Maximum elements of a value that inference propagates. Shapes do not depend on larger tensors."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Elementwise bounds of a tensor, two arrays of its shape; the extreme integers of i64 mean unbounded.

    Bounds of integers are i64. Sizes that are converted to floats, scaled and converted back have floats as bounds.
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        # NumPy returns scalars for arithmetic on arrays without axes.
        object.__setattr__(self, "lower", np.asarray(self.lower))
        object.__setattr__(self, "upper", np.asarray(self.upper))

    @staticmethod
    def of_dims(dims: Iterable[Dim]) -> Bounds:
        """The bounds of a 1-D tensor with these dims as elements."""
        dims = tuple(dims)
        return Bounds(
            array_of([d.lo for d in dims], np.int64),
            array_of([UNBOUNDED_HI if d.hi is None else d.hi for d in dims], np.int64),
        )

    @property
    def is_exact(self) -> bool:
        """True if the lower and upper bound of every element are equal."""
        return bool(np.array_equal(self.lower, self.upper))

    def dims(self) -> tuple[Dim, ...]:
        """The elements, flat, as dims; negative sizes are clamped to 0."""
        return tuple(
            Dim(max(number(lo), 0), None if hi == UNBOUNDED_HI else max(number(hi), 0))
            for lo, hi in zip(self.lower.ravel(), self.upper.ravel(), strict=True)
        )


@dataclass(frozen=True, slots=True, eq=False)
class TensorType:
    """The type of a tensor: `element`, `shape`, and its `value` (exact) or `bounds` if they can be inferred.

    `value`: an array of this shape in the storage dtype of the element type, which must not be written to.
    """

    element: ElementType
    shape: Shape
    value: Array | None = None
    bounds: Bounds | None = None

    @staticmethod
    def of(array: Array, element: ElementType | None = None) -> TensorType:
        """The type of an array, including its value."""
        return TensorType(element or element_of_dtype(array.dtype), shape_of(array.shape), array)

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        return self.shape.rank

    @property
    def is_static(self) -> bool:
        """True if element type and shape are both known."""
        return self.element is not dynamic and self.shape.is_static

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The elements of a tensor of sizes, flat, as far as they are known; None if its values are unknown."""
        if self.value is not None:
            return tuple(Dim(max(v, 0), max(v, 0)) for v in self.value.ravel().tolist())
        return None if self.bounds is None else self.bounds.dims()

    @property
    def ints(self) -> tuple[int, ...] | None:
        """The elements of an integer tensor, flat, or None unless all are known."""
        return None if self.value is None else tuple(number(v) for v in self.value.ravel().tolist())

    @property
    def nbytes(self) -> int | None:
        """Size in bytes in irload's storage dtype, None for a dynamic shape. A Python int, which cannot overflow."""
        size = self.shape.size
        return size.lo * self.element.dtype.itemsize if size.is_static and self.shape.rank is not None else None

    def without_value(self) -> Self:
        """The same type without its value and bounds."""
        return self if self.value is None and self.bounds is None else replace(self, value=None, bounds=None)

    def contains(self, other: TensorType) -> bool:
        """True if this type allows every tensor that `other` allows."""
        return self.element in (dynamic, other.element) and self.shape.contains(other.shape)

    def __str__(self) -> str:
        return f"{self.element}{self.shape}"

    __repr__ = __str__


UNKNOWN = TensorType(dynamic, UNRANKED)
"""The type of an unknown tensor."""


def length_of(tensor: TensorType) -> Dim:
    """The length of a 1-D tensor (such as a target shape), ANY if its rank is unknown. A scalar has length 1."""
    if tensor.shape.rank is None:
        return ANY
    return tensor.shape[0] if tensor.shape.rank else Dim(1, 1)


def owner_of(array: Array) -> Array:
    """The array that owns the memory of this one: itself unless it is a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
