"""Arrays of selections with symbolic sizes: constants broadcast to a symbolic shape, and tables computed from sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from irload.core.size import Deferred, is_size
from irload.core.tensor import Array
from irload.record import record


@record(eq=False)
class SpreadConstant:
    """A constant broadcast to a symbolic shape, with the attributes of arrays that selections read."""

    array: Array
    shape: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """The stride along each axis in bytes, 0 for broadcast axes."""
        strides = [0 if n == 1 else stride for n, stride in zip(self.array.shape, self.array.strides, strict=True)]
        return (*(0,) * (len(self.shape) - len(strides)), *strides)

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
    """An array broadcast to a shape, which may contain symbolic sizes."""
    item: Any = array
    if isinstance(item, np.ndarray) and any(map(is_size, shape)):
        return cast(Any, SpreadConstant(array, tuple(shape)))
    return np.broadcast_to(array, shape)


@record(eq=False)
class ComputedArray:
    """An array that a function computes for each shape from symbolic sizes."""

    function: Callable[..., Array]
    sizes: Sequence[int]

    @property
    def __array_interface__(self) -> Mapping[str, Any]:
        return {"data": (Deferred(self.function, self.sizes), False)}


def computed(function: Callable[..., Array], *sizes: int) -> Array:
    """The array that a function computes from sizes. If some sizes are symbolic, it is called for each shape."""
    return cast(Any, ComputedArray(function, sizes)) if any(map(is_size, sizes)) else function(*sizes)
