"""Slice and SliceScatter, and the interval arithmetic of slices, also used by StridedSlice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.bounds import bounds_of, moved
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axes
from irload.core.size import is_size, number
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType, length_of
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.ports import require_integer, require_rank

Interval = tuple[int, int]
ENDLESS = 1 << 31
"""Ends at this distance or beyond mean no limit; a longer result means that the axis is unbounded."""


def intervals(tensor: TensorType) -> list[Interval] | None:
    """The least and greatest value of each element; the limits of a narrow type mean unbounded."""
    known = bounds_of(tensor)
    if known is None:
        return None
    limits = np.iinfo(tensor.element.dtype) if tensor.element.is_integer else np.iinfo(np.int64)
    widest: dict[int, int] = {
        int(limits.min) if limits.min else UNBOUNDED_LO: UNBOUNDED_LO,
        int(limits.max): UNBOUNDED_HI,
    }

    def widened(end: int) -> int:
        return end if is_size(end) else widest.get(end, end)

    return [
        (widened(number(low)), widened(number(high)))
        for low, high in zip(known.lower.ravel().tolist(), known.upper.ravel().tolist(), strict=True)
    ]


def sliced_dim(dim: Dim, start: Interval, stop: Interval, step: int) -> Dim:
    """The possible lengths of `start:stop:step` on an axis of a size in `dim`, with start and stop in intervals."""
    if step == 0:
        raise ShapeMismatch("a step must not be zero")
    if dim.is_static and start[0] == start[1] and stop[0] == stop[1]:
        length = _length(dim.lo, start[0], stop[0], step)
        return Dim(length, length)
    if any(map(is_size, (dim.lo, dim.hi, *start, *stop))):
        return Dim(0, dim.hi)
    start, stop = _one_sided(start, dim), _one_sided(stop, dim)
    # The earliest start and the latest stop select the most elements; the reverse for a negative step.
    most, least = ((start[0], stop[1]), (start[1], stop[0])) if step > 0 else ((start[1], stop[0]), (start[0], stop[1]))
    sizes = _extreme_sizes(dim, *start, *stop)
    low = min(_length(size, *least, step) for size in sizes)
    high = max(_length(size, *most, step) for size in sizes)
    return Dim(low, None if high == UNBOUNDED_HI else high)


def _extreme_sizes(dim: Dim, *ends: int) -> set[int]:
    """The sizes at which the length may be least or greatest: the limits, and sizes where an end enters the axis.

    The length need not grow with the size: `-3:3` selects all of an axis of 3, but nothing of an axis of 6.
    """
    near = [abs(e) for e in ends if abs(e) < ENDLESS - 1]
    kinks = {n + more for n in (*near, sum(sorted(near)[-2:])) for more in (-1, 0, 1)}
    longest = UNBOUNDED_HI if dim.hi is None else dim.hi
    return {dim.lo, longest} | {n for n in kinks if dim.lo < n < longest}


def _one_sided(given: Interval, dim: Dim) -> Interval:
    """An interval from a negative to a non-negative number, with its ends in the order of the positions they mean.

    It contains −1, the last element, and 0, the first. So the result is (0, −1), except for ends outside the axis,
    which are unchanged.
    """
    low, high = given
    if low < 0 <= high:
        inside_low = dim.hi is None or low + dim.hi >= 0
        inside_high = dim.hi is None or high < dim.hi
        return (0 if inside_low else low, -1 if inside_high else high)
    return given


def _length(size: int, start: int, stop: int, step: int) -> int:
    """The number of elements of `start:stop:step` on an axis of `size`; UNBOUNDED_HI means no limit, also as result."""
    if size == 0:
        return 0
    backward, unbounded = step < 0, size == UNBOUNDED_HI
    open_ended = start in (UNBOUNDED_LO, UNBOUNDED_HI) or stop == UNBOUNDED_HI
    if unbounded and (open_ended or (start < 0) != (stop < 0)):
        # On an unbounded axis only ends counted from the same side have a known distance.
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
    """The ends counted from the front and clamped to the axis; a backward slice ends before the first element, −1."""
    first = min(max(start + size if start < 0 else start, 0), size - 1 if backward else size)
    last = min(max(stop + size if stop < 0 else stop, -1 if backward else 0), size)
    return first, last


def python_slice(size: int, start: int, stop: int, step: int) -> slice:
    """The NumPy slice for `start:stop:step` on an axis of `size`.

    Unlike in Python, a backward slice that starts before the first element selects that element.
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
    """Base of Slice and SliceScatter: the part of `data` that the inputs start, stop, step and axes select."""

    widens = False

    def region(
        self, data: Shape, start: TensorType, stop: TensorType, step: TensorType, axes: TensorType | None
    ) -> Shape:
        """The shape of the part, as far as it is known. Raises ShapeMismatch for invalid inputs."""
        self._check(data, start, stop, step, axes)
        sliced = self._axes(data, start, axes)
        starts, stops, steps = intervals(start), intervals(stop), step.ints
        if steps is not None and 0 in steps:
            raise ShapeMismatch("step must not be zero")
        if data.rank is None:
            return Shape.unranked()
        dims: list[Dim] = []
        for axis, dim in enumerate(data):
            if sliced is not None and axis not in sliced:
                dims.append(dim)
            elif sliced is None or starts is None or stops is None or steps is None:
                dims.append(Dim(0, dim.hi))
            else:
                k = sliced.index(axis)
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
        """The sliced axes, in input order; None if unknown."""
        if axes is None:
            return tuple(range(start.shape.size.size)) if start.shape.is_static else None
        if axes.ints is None or data.rank is None:
            return None
        sliced = normalize_axes(axes.ints, data.rank)
        if len(set(sliced)) < len(sliced):
            raise ShapeMismatch(f"axes must be unique, found {list(axes.ints)}")
        return sliced

    @staticmethod
    def slices(data: Array, start: Array, stop: Array, step: Array, axes: Array | None) -> tuple[slice, ...]:
        """The part as one slice per axis."""
        result = [slice(None)] * data.ndim
        along = range(start.size) if axes is None else normalize_axes(axes.tolist(), data.ndim)
        for axis, first, last, by in zip(along, start.tolist(), stop.tolist(), step.tolist(), strict=True):
            result[axis] = python_slice(data.shape[axis], first, last, by)
        return tuple(result)


class Slice(Sliced, since=8):
    """Elements `start` to `stop` (exclusive) by `step` of each of `axes`, as in Python's slices.

    Specification: Slice-8. Ends outside an axis are clamped; without axes the first ones are sliced.
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
    """A copy of `data` with the part that a Slice of the same inputs returns replaced by `updates`.

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
