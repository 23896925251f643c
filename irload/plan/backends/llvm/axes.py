"""Axes that several tensors share, with a stride per tensor. Axes that are contiguous in all tensors are merged."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irload.core.size import alike, is_size
from irload.plan.backends.llvm.builder import AnyInt
from irload.plan.backends.llvm.tuning import SHORT
from irload.record import record

ANY = -1 << 62
"""In the key of compiled code: a size or stride that the code reads from its arguments."""


@record()
class AxisLoop:
    """A loop over an axis: `size` positions, and for each tensor the stride in bytes."""

    size: AnyInt
    strides: tuple[AnyInt, ...]


@record()
class Axis(AxisLoop):
    """An axis of known size and strides. A `fixed` axis is neither merged with its neighbours nor dropped."""

    size: int
    strides: tuple[int, ...]
    fixed: bool = False


def axes_of(shape: Sequence[int], *strides: Sequence[int]) -> list[Axis]:
    """The axes of a shape with the strides of each tensor."""
    return [Axis(n, tuple(steps)) for n, *steps in zip(shape, *strides, strict=True)]


def size_of(axes: Sequence[Axis]) -> int:
    """The number of positions of all axes."""
    return prod(axis.size for axis in axes)


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The axes with contiguous neighbours merged and axes of size 1 dropped: the same positions in the same order.

    An axis whose size is 1 only for some shapes is not dropped.
    """
    result: list[Axis] = []
    for axis in axes:
        if alike(axis.size, 1) and not axis.fixed:
            continue
        previous = result[-1] if result else None
        if previous is not None and not previous.fixed and not axis.fixed:
            contiguous = all(a == axis.size * b for a, b in zip(previous.strides, axis.strides, strict=True))
            if contiguous:
                result[-1] = Axis(previous.size * axis.size, axis.strides)
                continue
        result.append(axis)
    return result


def by_memory(axes: Sequence[Axis]) -> list[Axis]:
    """The axes merged, in the order of the first tensor's strides, the largest first."""
    return merged(sorted(axes, key=lambda axis: -abs(axis.strides[0])))


def any_sizes(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The key of code that reads all sizes and strides of these axes. Strides of 0 (broadcast) are compiled in."""
    return tuple(Axis(ANY, any_strides(axis.strides)) for axis in axes)


def any_strides(strides: Sequence[int]) -> tuple[int, ...]:
    """The key of code that reads strides. Strides of 0 (broadcast) are compiled in."""
    return tuple(ANY if stride else 0 for stride in strides)


def strides_key(axis: Axis, contiguous: Sequence[int]) -> tuple[int, ...]:
    """The strides in the key of code: compiled in for broadcast tensors and for contiguous tensors, else ANY.

    `contiguous`: for each tensor, the stride with which it is contiguous.
    """
    pairs = zip(axis.strides, contiguous, strict=True)
    return tuple(stride if stride in (0, element) else ANY for stride, element in pairs)


def row_key(row: Axis, lanes: int, contiguous: Sequence[int]) -> Axis:
    """The key of code with vectors of `lanes` positions along an axis.

    The size of a row of at most SHORT vectors is compiled in, unless it differs between shapes.
    """
    known = not is_size(row.size) and 0 <= row.size <= SHORT * lanes
    return Axis(row.size if known else ANY, strides_key(row, contiguous))


def table(axes: Sequence[Axis], tensors: int) -> tuple[int, ...]:
    """Any number of axes in the form that `Arguments.table` reads.

    The strides of the outermost axis, whose size the code does not need; the number of the other axes; the size and
    strides of each of them, the innermost first.
    """
    outermost, *inner = axes or [Axis(1, (0,) * tensors)]
    listed = [number for axis in reversed(inner) for number in (axis.size, *axis.strides)]
    return (*outermost.strides, len(inner), *listed)
