"""Arrays of selections with sizes: constants broadcast to a shape with sizes, and tables computed from sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from irload.core.size import Deferred, is_size
from irload.core.tensor import Array
from irload.record import record


@record(eq=False)
class SpreadConstant:
    """A constant in a shape with sizes, to which it broadcasts: the attributes of an array that selections read."""

    array: Array
    shape: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours along each axis."""
        own = [0 if n == 1 else stride for n, stride in zip(self.array.shape, self.array.strides, strict=True)]
        return (*(0,) * (len(self.shape) - len(own)), *own)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self.array.dtype

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.array.itemsize

    @property
    def __array_interface__(self) -> Mapping[str, Any]:
        return self.array.__array_interface__


def spread(array: Array, shape: Sequence[int]) -> Array:
    """An array broadcast to a shape, which may have sizes."""
    given: Any = array
    if isinstance(given, np.ndarray) and any(map(is_size, shape)):
        return cast(Any, SpreadConstant(array, tuple(shape)))
    return np.broadcast_to(array, shape)


@record(eq=False)
class ComputedArray:
    """An array that a function computes from sizes for each shape."""

    function: Callable[..., Array]
    sizes: Sequence[int]

    @property
    def __array_interface__(self) -> Mapping[str, Any]:
        return {"data": (Deferred(self.function, self.sizes), False)}


def computed(function: Callable[..., Array], *sizes: int) -> Array:
    """The array that a function computes from numbers; if some are sizes, it runs for each shape."""
    return cast(Any, ComputedArray(function, sizes)) if any(map(is_size, sizes)) else function(*sizes)
