"""Copying into an array whose innermost axis is short, as that of photos with their channels innermost.

NumPy's innermost loop follows the strides of the target. Along an axis of three elements it hardly turns, and the copy
takes four times as long as one that takes position by position of that axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

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


class Filling:
    """Targets that are filled again and again."""

    def __init__(self, targets: Sequence[Array]) -> None:
        self._parts = [[(part, target[part]) for part in pieces(target)] for target in targets]

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy an array into each target."""
        for parts, array in zip(self._parts, arrays, strict=True):
            for part, target in parts:
                np.copyto(target, array[part])
