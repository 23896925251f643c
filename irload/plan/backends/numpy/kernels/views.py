"""Views of bound memory. Calls work on the same memory in every run, so none of their arguments may be a silent copy.

NumPy's own `reshape` copies what cannot be a view: what a value held when the step was compiled, or memory into which a
result is written and lost. So kernels reshape by these functions alone, which a test holds them to, and table_check.py
finds whatever else copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.strides import View


def shaped(array: Array, *shape: int) -> Array:
    """The view in another shape. Raises ValueError where memory allows none."""
    return np.reshape(array, _lengths(shape), copy=False)


def merged(array: Array, *shape: int) -> Array | None:
    """The view in another shape, None where memory allows none."""
    shape = _lengths(shape)
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return None


def _lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape. NumPy takes any negative length for an open one; what is below −1 is a mistake."""
    if min(shape, default=0) < -1:
        raise ValueError(f"no shape: {shape}")
    return shape


def seen(array: Array, view: View) -> Array | None:
    """The array through a view of the program, None for a reshape where memory allows none."""
    match view.kind:
        case "reshape":
            return merged(array, *view.axes)
        case "transpose":
            return array.transpose(view.axes)
        case "broadcast":
            return np.broadcast_to(array, view.axes)
        case "slice":
            stops = (start + count * step for start, count, step in view.ranges)
            ends = (None if stop < 0 else stop for stop in stops)
            return array[tuple(slice(r[0], end, r[2]) for r, end in zip(view.ranges, ends, strict=True))]


def shaped_constant(weights: Array, *shape: int) -> Array:
    """Constants in another shape, as a read-only copy where no view will do: never for what a step computes."""
    view = merged(weights, *shape)
    return shaped(frozen(np.array(weights, order="C")), *shape) if view is None else view


def frozen(array: Array) -> Array:
    """An array of constants that owns its memory, read-only from now on."""
    assert array.base is None, "a view, whose owner may change it"
    array.flags.writeable = False
    return array


def owner_of(array: Array) -> Any:
    """What holds the memory that an array is a view of: an array, or bytes or a file."""
    owner: Any = array
    while getattr(owner, "base", None) is not None:  # the views that as_strided makes hang on an object of its own
        owner = owner.base
    return owner


def leading(array: Array, rank: int) -> Array:
    """The view with axes of length 1 in front, up to a rank."""
    return array[(None,) * (rank - array.ndim)]
