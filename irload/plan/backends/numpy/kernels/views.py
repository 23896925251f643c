"""Views of bound memory. Calls use the same memory in every run, so no argument may be a silent copy.

NumPy's `reshape` copies if a view is impossible: the copy would contain stale values from compile time, or receive a
result that is lost. Kernels therefore reshape with these functions only, which a test enforces; table_check.py
detects other copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.strides import View


def shaped(array: Array, *shape: int) -> Array:
    """Return the view in another shape. Raises ValueError if memory allows none."""
    return np.reshape(array, _lengths(shape), copy=False)


def merged(array: Array, *shape: int) -> Array | None:
    """Return the view in another shape, None if memory allows none."""
    shape = _lengths(shape)
    try:
        return np.reshape(array, shape, copy=False)
    except ValueError:
        return None


def _lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Check that no length is below −1, which is a mistake: NumPy infers an axis for any negative length."""
    if min(shape, default=0) < -1:
        raise ValueError(f"invalid shape: {shape}")
    return shape


def seen(array: Array, view: View) -> Array | None:
    """Apply a view of the program to an array. None for a reshape that requires a copy."""
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
    """Return a constant array in another shape, as a read-only copy if necessary. Not for results of steps."""
    view = merged(weights, *shape)
    return shaped(frozen(np.array(weights, order="C")), *shape) if view is None else view


def frozen(array: Array) -> Array:
    """Make an array of constants read-only and return it. The array must not be a view."""
    assert array.base is None, "a view, whose base may be modified"
    array.flags.writeable = False
    return array


def owner_of(array: Array) -> Any:
    """Return the object that owns an array's memory: an array, bytes or a file."""
    owner: Any = array
    while getattr(owner, "base", None) is not None:  # views by as_strided have an intermediate base object
        owner = owner.base
    return owner


def leading(array: Array, rank: int) -> Array:
    """Return the view with leading axes of length 1, up to a rank."""
    return array[(None,) * (rank - array.ndim)]
