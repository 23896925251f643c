"""Converts steps to functions of NumPy arrays, which do not use the memory of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from irload.core.op import computes_directly, evaluate
from irload.core.tensor import Array
from irload.plan.ir.program import Step, Value
from irload.plan.ir.sized import hashable
from irload.plan.ir.steps import ComputeStep
from irload.plan.ir.steps.movement import ViewStep
from irload.plan.ir.strides import View
from irload.plan.traced.numbers import Numbers

Compute = Callable[[Sequence[int], Mapping[Value, Array]], Array]
"""Takes the values of all sizes and the arrays of other values, and returns the array of a value."""

Read = Callable[[Mapping[Value, Array]], Array]
"""Returns one of the arrays, or a constant."""


def computes_alone(step: ComputeStep) -> bool:
    """True if `compute` needs no conversion, check or context, and returns one array."""
    dtypes = [v.dtype for v in (*step.inputs, *step.outputs)]
    return step.is_function and len(step.outputs) == 1 and computes_directly(step.op, dtypes)


def functions_of(step: Step, numbers: Numbers, known: AbstractSet[Value]) -> list[Compute]:
    """Return one function per result of a step whose inputs are `known` values or constants."""
    inputs = [_reader(value, known) for value in step.inputs]
    if isinstance(step, ViewStep):
        return [_viewing(step, inputs[0], numbers)]
    if not isinstance(step, ComputeStep):
        raise TypeError(f"{step.title} is not a function of arrays")
    op, types = step.op, numbers.builder(step.types)

    def result(index: int) -> Compute:
        return lambda values, arrays: evaluate(op, [read(arrays) for read in inputs], types(values))[index]

    if computes_alone(step):
        return [_computing(step, inputs, result(0))]
    return [result(k) for k in range(len(step.outputs))]


def _computing(step: ComputeStep, inputs: Sequence[Read], checked: Compute) -> Compute:
    """Return `compute` without checks. If it fails, `checked` raises its error or returns an empty output."""
    compute: Callable[..., Array] = step.op.compute  # pyrefly: ignore[bad-assignment] - one output

    def result(values: Sequence[int], arrays: Mapping[Value, Array]) -> Array:
        try:
            return compute(*[read(arrays) for read in inputs])
        except Exception:
            return checked(values, arrays)

    return result


def _reader(value: Value, known: AbstractSet[Value]) -> Read:
    if value in known:
        return lambda arrays: arrays[value]
    if value.source is None:
        raise TypeError("a value is neither known nor constant")
    array = value.source.array
    return lambda arrays: array


def _viewing(step: ViewStep, source: Read, numbers: Numbers) -> Compute:
    view = step.view
    if view.kind in ("reshape", "broadcast") and hashable(step.output.shape) == hashable(step.inputs[0].shape):
        return lambda values, arrays: source(arrays)
    if view.kind == "reshape":  # the most frequent case
        shape = numbers.builder(view.axes)
        return lambda values, arrays: source(arrays).reshape(shape(values))
    build = numbers.builder(view)
    return lambda values, arrays: viewed(source(arrays), build(values))


def viewed(array: Array, view: View) -> Array:
    """Apply a view to an array."""
    match view.kind:
        case "reshape":
            return array.reshape(view.axes)
        case "transpose":
            return array.transpose(view.axes)
        case "broadcast":
            return np.broadcast_to(array, view.axes)
        case "slice":
            return array[tuple(map(_slice, view.ranges))]


def _slice(bounds: tuple[int, int, int]) -> slice:
    """Return the slice for (start, count, step)."""
    start, count, step = bounds
    stop = start + count * step
    return slice(start, None if stop < 0 else stop, step) if count else slice(0, 0)
