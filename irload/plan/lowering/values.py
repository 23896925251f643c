"""What lowerings ask of values, and make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Reshape, Slice


def all_f32(values: Sequence[Value]) -> bool:
    """True when every value is f32, the type that steps with arithmetic take."""
    return all(v.dtype == np.float32 for v in values)


def scalar(value: Value) -> float | None:
    """The number that a constant of one element holds, None for all else."""
    return None if value.size != 1 or value.constant is None else float(value.constant.reshape(-1)[0])


def rounded(number: float) -> float:
    """The number that it is in f32, infinite perhaps."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def known_axes(value: Value, rank: int) -> tuple[int, ...]:
    """The axes that a constant lists, in order; none where they are not known."""
    given = () if value.constant is None or not rank else value.constant.reshape(-1).tolist()
    return tuple(sorted({int(axis) % rank for axis in given}))


def from_start(indices: Array, size: int | Sequence[int]) -> Array | None:
    """Indices into axes of these sizes, i64, negative ones counted from the end; None where one is outside."""
    at = indices.astype(np.int64)
    at = np.where(at < 0, at + size, at)
    return at if ((at >= 0) & (at < size)).all() else None


def apart(given: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    """Strides or dilations, 1 along axes of one element, where any number may stand in the file."""
    return tuple(1 if count == 1 else n for n, count in zip(given, counts, strict=True))


def resized(value: Value, axis: int, size: int) -> Value:
    """A value of the same type and shape, but for the size of one axis."""
    return Value((*value.shape[:axis], size, *value.shape[axis + 1 :]), value.dtype, name=value.name)


def sliced(value: Value, axis: int, index: slice) -> Slice:
    """The step that takes a slice along one axis."""
    size = len(range(*index.indices(value.shape[axis])))
    return Slice([value], [resized(value, axis, size)], index=(*(slice(None),) * axis, index))


def ending(data: Value, steps: list[Step], outputs: list[Value]) -> list[Step]:
    """The steps, the last of which gives the outputs; where there are none, what gives the data as they are."""
    if not steps:
        return [Reshape([data], outputs)]
    steps[-1].outputs = outputs
    return steps
