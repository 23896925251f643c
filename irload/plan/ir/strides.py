"""Views as strides: Reshape, Transpose, Slice and Broadcast as arithmetic on shape, strides and offset."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from irload.core.size import is_size
from irload.record import record


@record()
class Strided:
    """Element (i, j, …) of a tensor is at `offset` + i·strides[0] + j·strides[1] + … in its buffer, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def dense(shape: tuple[int, ...], order: Sequence[int] = ()) -> Strided:
        """Return contiguous strides for the axes in `order`, outermost first; row-major by default."""
        strides, step = [0] * len(shape), 1
        for axis in reversed(order or range(len(shape))):
            strides[axis] = step
            step *= shape[axis]
        return Strided(shape, tuple(strides))

    def in_bytes(self, itemsize: int) -> Strided:
        """Return strides and offset in bytes."""
        return Strided(self.shape, tuple(s * itemsize for s in self.strides), self.offset * itemsize)


ViewKind = Literal["reshape", "transpose", "slice", "broadcast"]


@record()
class View:
    """A view of a tensor.

    `axes` is the shape of a reshape or broadcast, or the permutation of a transpose. `ranges` has start, count and step
    (which may be negative) of a slice, per axis.
    """

    kind: ViewKind
    axes: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int, int], ...] = ()

    def of(self, strided: Strided) -> Strided | None:
        """Apply the view to a tensor. None if no strides describe the result, which happens only for a reshape."""
        match self.kind:
            case "reshape":
                return _reshaped(strided, self.axes)
            case "transpose":
                return _transposed(strided, self.axes)
            case "slice":
                return _sliced(strided, self.ranges)
            case "broadcast":
                return _broadcast(strided, self.axes)


def _transposed(strided: Strided, order: Sequence[int]) -> Strided:
    shape, strides = strided.shape, strided.strides
    return Strided(tuple(shape[k] for k in order), tuple(strides[k] for k in order), strided.offset)


def _sliced(strided: Strided, ranges: Sequence[tuple[int, int, int]]) -> Strided:
    offset = strided.offset + sum(start * s for (start, _, _), s in zip(ranges, strided.strides, strict=True))
    strides = tuple(step * s for (_, _, step), s in zip(ranges, strided.strides, strict=True))
    shape = tuple(count for _, count, _ in ranges)
    return Strided(shape, strides, offset if prod(shape) else strided.offset)


def _broadcast(strided: Strided, shape: tuple[int, ...]) -> Strided:
    missing = len(shape) - len(strided.shape)
    axes = zip(strided.shape, strided.strides, shape[missing:], strict=True)
    strides = (0,) * missing + tuple(0 if n == 1 != wide else s for n, s, wide in axes)
    return Strided(shape, strides, strided.offset)


def _reshaped(strided: Strided, shape: tuple[int, ...]) -> Strided | None:
    """Match groups of axes with equal element counts before and after; the axes of a group must be contiguous.

    A symbolic size is never treated as 1, even if it may be 1: comparing it with 1 would record a guard.
    """
    if not prod(shape):
        return Strided(shape, Strided.dense(shape).strides, strided.offset)
    old = [(n, s) for n, s in zip(strided.shape, strided.strides, strict=True) if is_size(n) or n != 1]
    strides = [0] * len(shape)
    new = [k for k, n in enumerate(shape) if is_size(n) or n != 1]
    i = j = 0
    while i < len(old) and j < len(new):
        first, last = i, j
        before, after = old[i][0], shape[new[j]]
        while before != after:
            if before < after:
                i += 1
                before *= old[i][0]
            else:
                j += 1
                after *= shape[new[j]]
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first, i)):
            return None
        step = old[i][1]
        for k in reversed(new[last : j + 1]):
            strides[k] = step
            step *= shape[k]
        i, j = i + 1, j + 1
    step = 1
    for k in reversed(range(len(shape))):  # an axis of length 1 may have any stride; use the contiguous one
        if not is_size(shape[k]) and shape[k] == 1:
            strides[k] = step
        step = strides[k] * shape[k]
    return Strided(shape, tuple(strides), strided.offset)
