"""The parts of tensors that Loop and TensorIterator slice, concatenate, or extend in each iteration."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irload.core.context import RunContext
from irload.core.shape import ANY, Dim, Shape, normalize_axis
from irload.core.subgraph import Accumulator, PortMap
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch


def part_type(m: PortMap, tensor: TensorType) -> TensorType:
    """The type of one part of a sliced input."""
    if tensor.rank is None:
        return tensor.without_value()
    return TensorType(tensor.element, tensor.shape.with_dim(m.along(tensor.rank), m.part_size))


def part_count(m: PortMap, size: int) -> int:
    """The number of parts of an axis of `size`. `start` and `end` are inclusive; negative ones count from the end."""
    first, last = (v + size if v < 0 else v for v in (m.start, m.end))
    if size == 0 and min(first, last) < 0:
        return 0
    length = abs(last - first) + 1
    if not (0 <= first < size and 0 <= last < size) or length % m.part_size:
        raise ShapeMismatch(
            f"elements {m.start} to {m.end} of an axis of {size} are not a whole number of parts of {m.part_size}"
        )
    return length // m.part_size


class Slices:
    """The parts of a sliced input, as views. A negative stride iterates backwards, but not within a part."""

    def __init__(self, array: Array, m: PortMap) -> None:
        self._array, self._stride, self._length = array, m.stride, m.part_size
        axis = m.along(array.ndim)
        self._before, self._size = (slice(None),) * axis, array.shape[axis]
        self._first = (m.start + self._size if m.start < 0 else m.start) - (m.part_size - 1 if m.stride < 0 else 0)
        self._name = f"input {m.port}, whose axis {axis} has {self._size} elements"

    def part(self, k: int) -> Array:
        """Part `k`. Raises ExecutionError if it is not in the input."""
        begin = self._first + k * self._stride
        if begin < 0 or begin + self._length > self._size:
            raise ExecutionError(f"iteration {k} has no part of {self._name}")
        return self._array[(*self._before, slice(begin, begin + self._length))]


def require_part(m: PortMap, result: Array, k: int) -> None:
    """Raise ExecutionError if the result of iteration `k` is not one part of a concatenated output."""
    axis = m.along(max(result.ndim, 1))
    length = result.shape[axis] if result.ndim else 1
    if length != m.part_size:
        raise ExecutionError(
            f"iteration {k} returned {length} elements on axis {axis} for output {m.outer}, "
            f"whose port map expects {m.part_size} of each (part_size)"
        )


def joined(parts: list[Array], m: PortMap) -> Array:
    """The results of all iterations, concatenated; in reverse for a negative stride. Scalars give a 1-D tensor."""
    arrays = [np.atleast_1d(a) for a in parts]
    return np.concatenate(arrays if m.stride > 0 else arrays[::-1], m.along(arrays[0].ndim))


def joined_type(m: PortMap, tensor: TensorType, length: Dim | None) -> TensorType:
    """The type of a concatenated output. `length` is the length of its axis, None if unknown."""
    if tensor.rank is None:
        return tensor.without_value()
    shape = tensor.shape if tensor.rank else Shape(1)
    return TensorType(tensor.element, shape.with_dim(m.along(len(shape)), ANY if length is None else length))


class Collected:
    """The parts of an `Accumulator` of a loop whose parameters have these initial values."""

    def __init__(self, accumulator: Accumulator, initial: Sequence[Array]) -> None:
        self._accumulator, self._initial = accumulator, initial[accumulator.parameter]
        self._start = 0 if accumulator.counter is None else int(initial[accumulator.counter].reshape(()))
        self._parts: list[Array] = []
        self._nbytes = self._initial.nbytes
        self._beside: tuple[int, ...] | None = None
        """The dims of the parts without the axis."""

    @property
    def _axis(self) -> int:
        """The axis, counted from the front. Raises ShapeMismatch if the initial value does not have it."""
        return normalize_axis(self._accumulator.axis, self._initial.ndim)

    def append(self, part: Array, context: RunContext) -> None:
        """Add the part of the next iteration. Raises ExecutionError if it does not fit, and LimitExceeded."""
        where, axis, shape = self._accumulator, self._axis, self._initial.shape
        if not where.is_slice:
            part = np.expand_dims(part, axis)
        beside = part.shape[:axis] + part.shape[axis + 1 :]
        if self._beside is None and part.ndim == len(shape):
            dims = zip(beside, shape[:axis] + shape[axis + 1 :], strict=True)
            if all(a == b or (where.broadcasts and b == 1) for a, b in dims):
                self._beside = beside
        if beside != self._beside or (where.writes and part.shape[axis] != 1):
            raise ExecutionError(
                f"iteration {len(self._parts)} adds a part of shape {list(part.shape)} along axis {axis} to a value "
                f"of shape {list(shape)}"
            )
        if where.writes:
            position, size = self._start + len(self._parts), shape[axis]
            if not -size <= position < size and size * math.prod(beside):  # an empty tensor is not written
                raise ExecutionError(f"index {position} is out of range for an axis of {size}")
        self._nbytes += part.nbytes
        context.limits.require("tensor_bytes", self._nbytes, "a value that a loop extends has grown too large")
        self._parts.append(part)

    def whole(self) -> Array:
        """The value after the last iteration, at least one."""
        axis, beside = self._axis, self._beside or ()
        if not self._accumulator.writes:
            return np.concatenate([self._initial, *self._parts], axis)
        length = self._initial.shape[axis]
        result = np.array(np.broadcast_to(self._initial, (*beside[:axis], length, *beside[axis:])))
        along = np.moveaxis(result, axis, 0)
        for k, part in enumerate(self._parts if result.size else (), self._start):
            along[k] = part.reshape(beside)
        return result
