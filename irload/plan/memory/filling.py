"""Copying into an array whose innermost axis is short, as that of photos with their channels innermost.

NumPy's innermost loop follows the strides of the target. Along an axis of three elements it hardly turns, and the copy
takes four times as long as one that takes position by position of that axis.
"""

from __future__ import annotations

from types import EllipsisType

from irload.core.tensor import Array

SHORT = 8
"""Elements of an innermost axis up to which one copy for each of them is faster."""

Index = tuple[slice | int, ...] | EllipsisType


def pieces(target: Array) -> list[Index]:
    """The parts of an array in which it is best filled: all of it, or one for each position of a short axis."""
    axes = [k for k, n in enumerate(target.shape) if n > 1]
    if len(axes) < 2:
        return [...]
    axis = min(axes, key=lambda k: (abs(target.strides[k]), -k))
    if axis == axes[-1] or target.shape[axis] > SHORT:
        return [...]
    return [(slice(None),) * axis + (k,) for k in range(target.shape[axis])]
