"""Axes that several tensors share, each with its strides, merged if neighbours are contiguous in all tensors."""

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
class Loop:
    """An axis as code walks it: `size` positions, and for each tensor the bytes between neighbours."""

    size: AnyInt
    strides: tuple[AnyInt, ...]


@record()
class Axis(Loop):
    """An axis of known size and strides. A `fixed` one is never merged with its neighbours, nor dropped."""

    size: int
    strides: tuple[int, ...]
    fixed: bool = False


def axes_of(shape: Sequence[int], *strides: Sequence[int]) -> list[Axis]:
    """The axes of a shape with the strides of each tensor."""
    return [Axis(n, tuple(steps)) for n, *steps in zip(shape, *strides, strict=True)]


def size_of(axes: Sequence[Axis]) -> int:
    """The positions of all axes."""
    return prod(axis.size for axis in axes)


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The same positions in the same order along as few axes as possible, none of size 1.

    An axis whose size may be 1 at some shapes is kept.
    """
    found: list[Axis] = []
    for axis in axes:
        if alike(axis.size, 1) and not axis.fixed:
            continue
        before = found[-1] if found else None
        if before is not None and not before.fixed and not axis.fixed:
            follow = all(a == axis.size * b for a, b in zip(before.strides, axis.strides, strict=True))
            if follow:
                found[-1] = Axis(before.size * axis.size, axis.strides)
                continue
        found.append(axis)
    return found


def by_memory(axes: Sequence[Axis]) -> list[Axis]:
    """The axes merged, in the order of the first tensor's strides, the largest first."""
    return merged(sorted(axes, key=lambda axis: -abs(axis.strides[0])))


def any_sizes(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The key of code that reads all sizes and strides of these axes; which tensors are broadcast is compiled in."""
    return tuple(Axis(ANY, any_strides(axis.strides)) for axis in axes)


def any_strides(strides: Sequence[int]) -> tuple[int, ...]:
    """The key of code that reads strides; which of them are 0 is compiled in."""
    return tuple(ANY if stride else 0 for stride in strides)


def strides_key(axis: Axis, contiguous: Sequence[int]) -> tuple[int, ...]:
    """The strides of a key: known for broadcast tensors and for contiguous ones, whose strides `contiguous` lists."""
    kept = zip(axis.strides, contiguous, strict=True)
    return tuple(stride if stride in (0, element) else ANY for stride, element in kept)


def row_key(row: Axis, lanes: int, contiguous: Sequence[int]) -> Axis:
    """The key of code with vectors of `lanes` positions along an axis: the size of a row of few vectors is kept.

    Of a size that differs between shapes, only less than one vector is kept.
    """
    most = lanes - 1 if is_size(row.size) else SHORT * lanes
    return Axis(row.size if 0 <= row.size <= most else ANY, strides_key(row, contiguous))


def table(axes: Sequence[Axis], tensors: int) -> tuple[int, ...]:
    """Any number of axes as `Arguments.table` reads them.

    The strides of the outermost axis, whose size no code needs, how many others there are, and of each, the innermost
    first, its size and strides.
    """
    outermost, *inner = axes or [Axis(1, (0,) * tensors)]
    listed = [number for axis in reversed(inner) for number in (axis.size, *axis.strides)]
    return (*outermost.strides, len(inner), *listed)
