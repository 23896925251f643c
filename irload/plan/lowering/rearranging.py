"""Lowerings of operations that rearrange elements, to views and concatenations.

If the `compute` of an operation only reshapes, transposes and slices, it is traced: it is called with a proxy of the
array, which records these calls as steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from irload.core.size import extent, number
from irload.graph import Node
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import BroadcastStep, ConcatStep, ReshapeStep, SliceStep, TransposeStep
from irload.plan.lowering.values import ending, resized, sliced


class Rearranged:
    """A proxy of an array for `compute`; each view of it becomes a step."""

    def __init__(self, value: Value, steps: list[Step]) -> None:
        self.value = value
        self._steps = steps
        self.shape = value.shape
        self.ndim = len(value.shape)
        self.size = value.size

    def reshape(self, *shape: Any) -> Rearranged:
        """Return the same elements in another shape; one length may be −1."""
        sizes = _numbers(shape)
        known = prod(n for n in sizes if n != -1)
        shape = tuple(self.size // known if n == -1 else n for n in sizes)
        return self if shape == self.shape else self._seen(ReshapeStep, shape)

    def transpose(self, *order: Any) -> Rearranged:
        """Return the array with permuted axes."""
        axes = _numbers(order)
        return self._seen(TransposeStep, tuple(self.shape[k] for k in axes), order=axes)

    def swapaxes(self, a: int, b: int) -> Rearranged:
        """Return the array with two axes exchanged."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def __getitem__(self, index: tuple[slice | int | None, ...]) -> Rearranged:
        slices: list[slice] = []
        shape: list[int] = []
        for at in index:
            if at is None:
                shape.append(1)
                continue
            size = self.shape[len(slices)]
            slices.append(at if isinstance(at, slice) else slice(at % size, at % size + 1))
            if isinstance(at, slice):
                shape.append(extent(at, size)[1])
        kept = tuple(extent(s, n)[1] for s, n in zip(slices, self.shape, strict=False))
        sliced = self._seen(SliceStep, (*kept, *self.shape[len(slices) :]), index=tuple(slices))
        rest = self.shape[len(slices) :]
        return sliced if sliced.shape == (*shape, *rest) else sliced.reshape(*shape, *rest)

    def _seen(self, kind: type[Step], shape: tuple[int, ...], **how: Any) -> Rearranged:
        view = self.value.like(shape)
        self._steps.append(kind([self.value], [view], **how))
        return Rearranged(view, self._steps)


def _numbers(given: tuple[Any, ...]) -> tuple[int, ...]:
    """Return integers given individually or as one sequence."""
    sequence = given[0] if len(given) == 1 and isinstance(given[0], Sequence) else given
    return tuple(number(n) for n in sequence)


def rearranged(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower an operation by tracing its `compute` on the first input. The other inputs must be constant."""
    known = [v.constant for v in inputs[1:]]
    if any(k is None for k in known):
        return None
    steps: list[Step] = []
    node.op.compute(Rearranged(inputs[0], steps), *known)
    return ending(inputs[0], steps, outputs)


def roll(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower Roll with known shifts: per axis, the end concatenated with the beginning."""
    data, shift, axes = inputs[0], inputs[1].constant, inputs[2].constant
    if shift is None or axes is None or not data.shape:
        return None
    steps: list[Step] = []
    along = axes.reshape(-1).tolist()
    for axis, count in zip(along, np.broadcast_to(shift.reshape(-1), len(along)).tolist(), strict=True):
        axis, size = axis % len(data.shape), data.shape[axis]
        first = -count % size
        if first:
            parts = [sliced(data, axis, part) for part in (slice(first, size), slice(0, first))]
            joined = ConcatStep([p.output for p in parts], [resized(data, axis, size)], axis=axis)
            steps += [*parts, joined]
            data = joined.output
    return ending(inputs[0], steps, outputs)


def tile(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower Tile with known counts: insert an axis before each axis, broadcast it to the count, and merge the two."""
    data, counts = inputs[0], inputs[1].constant
    if counts is None:
        return None
    rank = len(outputs[0].shape)
    sizes = (*(1,) * (rank - len(data.shape)), *data.shape)
    times = (*(1,) * (rank - counts.size), *counts.tolist())
    apart = tuple(n for size in sizes for n in (1, size))
    repeated = tuple(n for both in zip(times, sizes, strict=True) for n in both)
    steps: list[Step] = [ReshapeStep([data], [Value(apart, data.dtype, name=data.name)])]
    steps.append(BroadcastStep([steps[-1].output], [Value(repeated, data.dtype, name=data.name)]))
    return [*steps, ReshapeStep([steps[-1].output], outputs)]
