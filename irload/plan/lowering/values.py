"""Helpers of lowerings: properties of values, and steps with new values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.element import ElementType
from irload.core.shape import normalize_axes
from irload.core.size import array_of, extent, is_size
from irload.core.tensor import Array
from irload.ops.generation.range import Range4
from irload.ops.ports import as_i64
from irload.plan.ir.expression import expression_of
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ComputeStep, ElementwiseStep, ReduceStep, ReshapeStep, SliceStep


def all_f32(values: Sequence[Value]) -> bool:
    """True if every value is f32, the type that arithmetic steps require."""
    return all(v.dtype == np.float32 for v in values)


def scalar(value: Value) -> float | None:
    """Return the number in a constant of one element, or None for any other value."""
    return None if value.size != 1 or value.constant is None else float(value.constant.reshape(-1)[0])


def rounded(number: float) -> float:
    """Return the number rounded to f32; infinite if it is too large for f32."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def known_axes(value: Value, rank: int) -> tuple[int, ...]:
    """Return the sorted axes listed by a constant, empty if they are unknown."""
    given = () if value.constant is None or not rank else value.constant.reshape(-1).tolist()
    return tuple(sorted(set(normalize_axes(given, rank))))


def from_start(indices: Array, size: int | Sequence[int]) -> Array | None:
    """Return i64 indices into axes of these sizes, with negative ones resolved; None if one is out of range."""
    at, sizes = indices if indices.dtype == object else as_i64(indices), size
    if is_size(size):
        at, sizes = at.astype(object), np.asarray(size)
    at = np.where(at < 0, at + sizes, at)
    return at if ((at >= 0) & (at < sizes)).all() else None


def apart(given: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    """Return strides or dilations with 1 for each axis of one element, where they have no effect."""
    return tuple(1 if not is_size(count) and count == 1 else n for n, count in zip(given, counts, strict=True))


def resized(value: Value, axis: int, size: int) -> Value:
    """Return a new value of the same type and shape, except for the size of one axis."""
    return value.like((*value.shape[:axis], size, *value.shape[axis + 1 :]))


def progression(first: int, stride: int, shape: tuple[int, ...], element: ElementType, steps: list[Step]) -> Value:
    """Return first, first + stride, … along the first axis: a constant, or a Range of sizes added to `steps`."""
    count = shape[0]
    if not any(map(is_size, (first, count))):
        return Value.of((first + np.arange(count) * stride).astype(element.dtype).reshape(shape))
    ends = [Value.of(array_of([n], np.int64).reshape(())) for n in (first, first + count * stride, stride)]
    result = Value((count,), element.dtype)
    steps.append(ComputeStep.of(Range4(output_type=element), ends, result, element))
    if len(shape) == 1:
        return result
    wide = Value(shape, element.dtype)
    steps.append(ReshapeStep([result], [wide]))
    return wide


def sliced(value: Value, axis: int, index: slice) -> SliceStep:
    """Return the step that slices along one axis."""
    size = extent(index, value.shape[axis])[1]
    return SliceStep([value], [resized(value, axis, size)], index=(*(slice(None),) * axis, index))


def applied(opcode: str, x: Value, *others: Value) -> ElementwiseStep:
    """Return the step of one instruction on x, and on other operands that broadcast to x."""
    return ElementwiseStep([x, *others], [x.like()], expression=expression_of(opcode))


def reduced(x: Value, kind: str, axes: tuple[int, ...]) -> ReduceStep:
    """Return a reduction that keeps its axes with length 1."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    return ReduceStep([x], [x.like(shape)], kind=kind, axes=axes)


def ending(data: Value, steps: list[Step], outputs: list[Value]) -> list[Step]:
    """Return the steps after making the outputs the results of the last step; without steps, the identity of `data`."""
    if not steps:
        return [ReshapeStep([data], outputs)]
    steps[-1].outputs = outputs
    return steps
