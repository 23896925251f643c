"""Copies inputs into the memory of a plan; fast for targets with a short innermost axis, such as channels-last photos.

NumPy's inner loop runs along the innermost axis of the target. If that axis has three elements, each call of the loop
copies three elements, and the copy takes four times as long as one strided copy per index of that axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from irload.core.tensor import Array

SHORT = 8
"""Maximum length of the innermost axis for which one copy per index is faster."""

Index = tuple[slice | int, ...] | EllipsisType


def pieces(target: Array) -> list[Index]:
    """Return indices of views that are fast to fill: all of the array, or one view per index of a short inner axis."""
    axes = [k for k, n in enumerate(target.shape) if n > 1]
    if len(axes) < 2:
        return [...]
    axis = min(axes, key=lambda k: (abs(target.strides[k]), -k))
    if axis == axes[-1] or target.shape[axis] > SHORT:
        return [...]
    return [(slice(None),) * axis + (k,) for k in range(target.shape[axis])]


class Filling:
    """Copies arrays into the same targets in each inference.

    `before`: another Filling; its views of targets that both have are reused.
    """

    def __init__(self, targets: Sequence[Array], before: Filling | None = None) -> None:
        self._targets = targets
        known = {} if before is None else {id(t): p for t, p in zip(before._targets, before._parts, strict=True)}  # noqa: SLF001
        self._parts = [known.get(id(target)) or [(part, target[part]) for part in pieces(target)] for target in targets]
        self._plain = all(len(parts) == 1 for parts in self._parts)

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy an array into each target, unless it is the target itself."""
        if self._plain:
            for target, array in zip(self._targets, arrays, strict=True):
                if array is not target:
                    np.copyto(target, array)
            return
        for target, parts, array in zip(self._targets, self._parts, arrays, strict=True):
            for part, piece in parts if array is not target else ():
                np.copyto(piece, array[part])
