"""Slice and SliceScatter, and the interval arithmetic of slices that StridedSlice shares with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.bounds import bounds_of, moved
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axes
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType, length_of
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.ports import require_integer, require_rank

Interval = tuple[int, int]
ENDLESS = 1 << 31
"""Ends that far away mean no end, and a length above it is that of an unbounded axis without a few elements."""


def intervals(tensor: TensorType) -> list[Interval] | None:
    """The least and greatest value of each element; the limits of a narrow type stand for no limit."""
    known = bounds_of(tensor)
    if known is None:
        return None
    limits = np.iinfo(tensor.element.dtype) if tensor.element.is_integer else np.iinfo(np.int64)
    widest: dict[int, int] = {
        int(limits.min) if limits.min else UNBOUNDED_LO: UNBOUNDED_LO,
        int(limits.max): UNBOUNDED_HI,
    }
    return [
        (widest.get(low, low), widest.get(high, high))
        for low, high in zip(map(int, known.lower.ravel()), map(int, known.upper.ravel()), strict=True)
    ]


def sliced_dim(dim: Dim, start: Interval, stop: Interval, step: int) -> Dim:
    """The lengths that `start:stop:step` may have on an axis of a size in `dim`, start and stop within intervals."""
    if step == 0:
        raise ShapeMismatch("a step must not be zero")
    start, stop = _one_sided(start, dim), _one_sided(stop, dim)
    # An early start and a late stop take the most, and the other way round when going backward.
    most, least = ((start[0], stop[1]), (start[1], stop[0])) if step > 0 else ((start[1], stop[0]), (start[0], stop[1]))
    sizes = _telling_sizes(dim, *start, *stop)
    low = min(_length(size, *least, step) for size in sizes)
    high = max(_length(size, *most, step) for size in sizes)
    return Dim(low, None if high == UNBOUNDED_HI else high)


def _telling_sizes(dim: Dim, *ends: int) -> set[int]:
    """Sizes of which one gives the least and one the greatest length: the limits, and where an end enters the axis.

    The length need not grow with the size: of `-3:3`, an axis of 3 gives all, one of 6 nothing.
    """
    near = [abs(e) for e in ends if abs(e) < ENDLESS - 1]
    kinks = {n + more for n in (*near, sum(sorted(near)[-2:])) for more in (-1, 0, 1)}
    longest = UNBOUNDED_HI if dim.hi is None else dim.hi
    return {dim.lo, longest} | {n for n in kinks if dim.lo < n < longest}


def _one_sided(given: Interval, dim: Dim) -> Interval:
    """An interval that spans zero, read as positions: −1 is the last element, 0 the first.

    Its ends are the first and the last element, unless they lie outside the axis anyway.
    """
    low, high = given
    if low < 0 <= high:
        inside_low = dim.hi is None or low + dim.hi >= 0
        inside_high = dim.hi is None or high < dim.hi
        return (0 if inside_low else low, -1 if inside_high else high)
    return given


def _length(size: int, start: int, stop: int, step: int) -> int:
    """The elements of `start:stop:step` in an axis of `size`; UNBOUNDED_HI stands for no limit, also as the result."""
    if size == 0:
        return 0
    backward, unbounded = step < 0, size == UNBOUNDED_HI
    open_ended = start in (UNBOUNDED_LO, UNBOUNDED_HI) or stop == UNBOUNDED_HI
    if unbounded and (open_ended or (start < 0) != (stop < 0)):
        # Only ends counted from the same side of an endless axis lie a known distance apart.
        if backward:
            if start <= 0 or UNBOUNDED_HI in (start, stop):
                return UNBOUNDED_HI
            return _count(start + 1, step)
        if start < 0 and start != UNBOUNDED_LO:
            return _count(-start if stop == UNBOUNDED_HI else stop, step)
        return UNBOUNDED_HI
    first, last = positions(size, start, stop, backward)
    count = _count(first - last if backward else last - first, step)
    return UNBOUNDED_HI if unbounded and count > ENDLESS else count


def positions(size: int, start: int, stop: int, backward: bool) -> tuple[int, int]:
    """The ends counted from the front and cut to the axis; a backward slice ends before the first element, at −1."""
    first = min(max(start + size if start < 0 else start, 0), size - 1 if backward else size)
    last = min(max(stop + size if stop < 0 else stop, -1 if backward else 0), size)
    return first, last


def python_slice(size: int, start: int, stop: int, step: int) -> slice:
    """The slice that NumPy takes for `start:stop:step` on an axis of `size`.

    Unlike Python, a backward slice that starts before the first element takes that element.
    """
    if step == 0:
        raise ExecutionError("a step must not be zero")
    if size == 0:
        return slice(0, 0)
    first, last = positions(size, start, stop, step < 0)
    return slice(first, last if last >= 0 else None, step)


def _count(span: int, step: int) -> int:
    return -(-max(span, 0) // abs(step))


class Sliced(Op):
    """What Slice and SliceScatter share: which part of `data` the inputs start, stop, step and axes describe."""

    widens = False

    def region(
        self, data: Shape, start: TensorType, stop: TensorType, step: TensorType, axes: TensorType | None
    ) -> Shape:
        """The shape of the part, as far as it is known. Raises ShapeMismatch for inputs that describe none."""
        self._check(data, start, stop, step, axes)
        where = self._axes(data, start, axes)
        starts, stops, steps = intervals(start), intervals(stop), step.ints
        if steps is not None and 0 in steps:
            raise ShapeMismatch("step must not be zero")
        if data.rank is None:
            return Shape.unranked()
        dims: list[Dim] = []
        for axis, dim in enumerate(data):
            if where is not None and axis not in where:
                dims.append(dim)
            elif where is None or starts is None or stops is None or steps is None:
                dims.append(Dim(0, dim.hi))
            else:
                k = where.index(axis)
                dims.append(sliced_dim(dim, starts[k], stops[k], steps[k]))
        return Shape(*dims)

    def _check(
        self, data: Shape, start: TensorType, stop: TensorType, step: TensorType, axes: TensorType | None
    ) -> None:
        ports = {"start": start, "stop": stop, "step": step} | ({} if axes is None else {"axes": axes})
        require_integer(**ports)
        count = ANY
        for name, tensor in ports.items():
            require_rank(name, tensor, 1)
            met = count.meet(length_of(tensor))
            if met is None:
                raise ShapeMismatch(f"{', '.join(ports)} must have equal lengths, found {length_of(tensor)} for {name}")
            count = met
        if data.rank is not None and count.lo > data.rank:
            raise ShapeMismatch(f"{', '.join(ports)} have {count} values for data of rank {data.rank}")

    @staticmethod
    def _axes(data: Shape, start: TensorType, axes: TensorType | None) -> tuple[int, ...] | None:
        """The axes that are sliced, in input order; None when they are not known."""
        if axes is None:
            return tuple(range(start.shape.size.size)) if start.shape.is_static else None
        if axes.ints is None or data.rank is None:
            return None
        where = normalize_axes(axes.ints, data.rank)
        if len(set(where)) < len(where):
            raise ShapeMismatch(f"axes must be unique, found {list(axes.ints)}")
        return where

    @staticmethod
    def slices(data: Array, start: Array, stop: Array, step: Array, axes: Array | None) -> tuple[slice, ...]:
        """The part as one slice per axis."""
        result = [slice(None)] * data.ndim
        where = range(start.size) if axes is None else axes.tolist()
        for axis, first, last, by in zip(where, start.tolist(), stop.tolist(), step.tolist(), strict=True):
            result[axis] = python_slice(data.shape[axis], first, last, by)
        return tuple(result)


class Slice(Sliced, since=8):
    """Elements `start` to `stop` (not included) by `step` of each of `axes`, as Python's slices take them.

    Specification: Slice-8. Ends outside an axis are cut; without axes the first ones are meant.
    """

    def infer(
        self, data: TensorType, start: TensorType, stop: TensorType, step: TensorType, axes: TensorType | None = None
    ) -> TensorType:
        return TensorType(data.element, self.region(data.shape, start, stop, step, axes))

    def compute(self, data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None) -> Array:
        return data[self.slices(data, start, stop, step, axes)]

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs)


class SliceScatter(Sliced, since=15):
    """A copy of `data` in which the part that a Slice of the same inputs would give is replaced by `updates`.

    Specification: SliceScatter-15. `updates` must have the shape of that part.
    """

    def infer(
        self,
        data: TensorType,
        updates: TensorType,
        start: TensorType,
        stop: TensorType,
        step: TensorType,
        axes: TensorType | None = None,
    ) -> TensorType:
        element = merge(data.element, updates.element)
        part = self.region(data.shape, start, stop, step, axes)
        if part.meet(updates.shape) is None:
            raise ShapeMismatch(f"updates of shape {updates.shape} do not fit the part of shape {part}")
        return TensorType(element, Shape.any(updates.rank) if data.rank is None else data.shape)

    def compute(
        self, data: Array, updates: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
    ) -> Array:
        result = data.copy()
        result[self.slices(data, start, stop, step, axes)] = updates
        return result
