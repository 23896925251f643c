"""Axes that several tensors share, each with its strides, joined where neighbours lie one behind the other in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.plan.backends.llvm.builder import Function, Int
from irload.record import record


@record()
class Axis:
    """`size` positions; in each tensor they lie so many bytes apart. `fixed`: it must stay an axis of its own."""

    size: int
    strides: tuple[int, ...]
    fixed: bool = False


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The same positions in the same order with as few axes as possible; those of one position are dropped."""
    found: list[Axis] = []
    for axis in axes:
        if axis.size == 1 and not axis.fixed:
            continue
        before = found[-1] if found else None
        if before is not None and not before.fixed and not axis.fixed:
            follow = all(a == axis.size * b for a, b in zip(before.strides, axis.strides, strict=True))
            if follow:
                found[-1] = Axis(before.size * axis.size, axis.strides)
                continue
        found.append(axis)
    return found


def offsets(f: Function, index: Int, axes: Sequence[Axis], tensors: int) -> list[Int]:
    """Where position `index`, counted through all axes, lies in each of the tensors: bytes from its position 0."""
    found: list[Int] = [0] * tensors
    for k, axis in reversed(list(enumerate(axes))):
        index, at = f.divmod(index, axis.size) if k else (0, index)
        found = [f.add(o, f.multiply(at, s)) for o, s in zip(found, axis.strides, strict=True)]
    return found


def unbounded(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes without the size of the first one, on which `offsets` does not depend."""
    return tuple(replace(axis, size=0) if k == 0 else axis for k, axis in enumerate(axes))


def by_memory(axes: Sequence[Axis]) -> list[Axis]:
    """The axes in the order in which the first tensor lies, outermost first, joined."""
    return merged(sorted(axes, key=lambda axis: -abs(axis.strides[0])))
