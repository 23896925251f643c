"""Replace GatherElements whose indices are in range by a Gather along the last axis.

The indices are in range for all inputs of the model if they are constants, clamped, remainders, or positions of a TopK.
Any other GatherElements is computed by its operation, which reports indices out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from irload.core.op import is_builtin
from irload.core.size import largest, smallest
from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.reshaping import transposed
from irload.plan.ir.steps import INDICES, ComputeStep, ConcatStep, GatherStep, TopKStep, TransposeStep
from irload.plan.ir.steps.movement import ViewStep

MOVES = ("Broadcast", "Convert", "ConvertLike", "Tile")
"""Operations whose results consist of elements of their first input, possibly converted to integers."""

ARITHMETIC: Mapping[str, Callable[[Any, Any, Any, Any], tuple[Any, Any]]] = {
    "Add": lambda low, high, other_low, other_high: (low + other_low, high + other_high),
    "Maximum": lambda low, high, other_low, other_high: (max(low, other_low), max(high, other_high)),
    "Minimum": lambda low, high, other_low, other_high: (min(low, other_low), min(high, other_high)),
    "Subtract": lambda low, high, other_low, other_high: (low - other_high, high - other_low),
}
"""The bounds of operations on integers, from the bounds of both operands."""


def gather_elements(program: Program, supports: Callable[[Step], bool]) -> None:
    """Replace each GatherElements whose indices are in range."""
    producers = program.producers()

    def steps_for(step: ComputeStep) -> list[Step] | None:
        steps = _gather(step, producers) if is_builtin(step.op) and step.op.type == "GatherElements" else None
        return steps if steps is not None and all(map(supports, steps)) else None

    program.rewrite(ComputeStep, steps_for)


def _gather(step: ComputeStep, producers: Producers) -> list[Step] | None:
    """Return the Gather that shares all axes but one; None if an index may be out of range."""
    data, indices = step.inputs
    rank = len(data.shape)
    axis = step.op.attributes["axis"] % rank
    if indices.dtype.name not in INDICES or data.dtype.hasobject or not data.size or not indices.size:
        return None
    bounds = _bounds(indices, producers)
    if bounds is None or bounds[0] < -data.shape[axis] or bounds[1] >= data.shape[axis]:
        return None
    order = (*(k for k in range(rank) if k != axis), axis)
    steps: list[Step] = []
    operands = [transposed(value, order, steps) for value in step.inputs]
    selected = data.like(operands[1].shape)
    steps.append(GatherStep(operands, [selected], axis=rank - 1, shared=rank - 1))
    steps.append(TransposeStep([selected], step.outputs, order=tuple(order.index(k) for k in range(rank))))
    for new in steps:
        new.origin = step.origin
    return steps


def _bounds(value: Value, producers: Producers) -> tuple[Any, Any] | None:
    """Return the least and the greatest value that integers can have for any input of the model, or None if unknown.

    None if an exact result may exceed the type, because integers wrap.
    """
    if value.dtype.kind not in "iu":
        return None
    bounds, limits = _exact(value, producers), np.iinfo(value.dtype)
    return bounds if bounds is not None and bounds[0] >= limits.min and bounds[1] <= limits.max else None


def _exact(value: Value, producers: Producers) -> tuple[Any, Any] | None:
    """Return the bounds of integers that do not wrap, from the bounds of the integers of which they are computed."""
    numbers = value.constant
    if numbers is not None and numbers.dtype == object:  # symbolic sizes
        return (reduce(smallest, numbers.flat), reduce(largest, numbers.flat)) if numbers.size else None
    if numbers is not None:
        return (int(numbers.min()), int(numbers.max())) if numbers.size else None
    step = producers.get(value)
    match step:
        case ViewStep():
            return _bounds(step.inputs[0], producers)
        case ConcatStep():
            return _union(step.inputs, producers)
        case TopKStep():
            return 0, step.inputs[0].shape[step.axis] - 1
        case ComputeStep() if is_builtin(step.op):
            return _of_operation(step, value, producers)
        case _:
            return None


def _union(values: Sequence[Value], producers: Producers) -> tuple[Any, Any] | None:
    """Return the bounds of integers that are elements of these values."""
    bounds = [_bounds(value, producers) for value in values]
    known = [each for each in bounds if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(bounds) else None


def _of_operation(step: ComputeStep, value: Value, producers: Producers) -> tuple[Any, Any] | None:
    attributes = step.op.attributes
    match step.op.type:
        case "TopK" if value is step.outputs[1]:
            return 0, step.inputs[0].shape[attributes["axis"]] - 1
        case "Clamp":
            low, high = attributes["min"], attributes["max"]
            return (math.ceil(low), math.floor(high)) if math.isfinite(low) and math.isfinite(high) else None
        case "SearchSorted" | "Bucketize":
            boundaries = step.inputs[step.op.type == "Bucketize"]
            return 0, boundaries.shape[-1]
        case type if type in ARITHMETIC:
            a, b = (_bounds(operand, producers) for operand in step.inputs)
            return None if a is None or b is None else ARITHMETIC[type](*a, *b)
        case "Select":
            return _union(step.inputs[1:], producers)
        case "FloorMod":
            divisor = _bounds(step.inputs[1], producers)
            return (0, divisor[1] - 1) if divisor is not None and divisor[0] > 0 else None
        case type if type in MOVES:
            return _bounds(step.inputs[0], producers)
        case _:
            return None
