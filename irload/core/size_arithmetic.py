"""Operations on arrays of sizes: the values of shape subgraphs for all shapes at once."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from irload.core.element import boolean, f32, f64
from irload.core.op import Op, is_builtin
from irload.core.ratio import each, ratios
from irload.core.shape import Shape
from irload.core.size import has_sizes, largest, smallest
from irload.core.tensor import Array, TensorType

MOVEMENTS = frozenset(
    {
        "Broadcast",
        "Concat",
        "Gather",
        "ReduceProd",
        "Reshape",
        "Select",
        "Slice",
        "Split",
        "Squeeze",
        "StridedSlice",
        "Transpose",
        "Unsqueeze",
        "VariadicSplit",
    }
)
"""Operations whose `compute` accepts arrays of sizes, because it only moves elements."""
SIZE_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Ceiling": np.asarray,
    "Convert": np.asarray,
    "Equal": np.equal,
    "Floor": np.asarray,
    "FloorMod": np.mod,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Maximum": np.frompyfunc(largest, 2, 1),
    "Minimum": np.frompyfunc(smallest, 2, 1),
    "Multiply": np.multiply,
    "NotEqual": np.not_equal,
    "Subtract": np.subtract,
}
"""Elementwise operations on integers, with NumPy functions that compute the same on arrays of sizes."""
SIZE_REDUCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "ReduceMax": largest,
    "ReduceMin": smallest,
    "ReduceSum": operator.add,
}
"""Reductions, with functions of two elements that accept sizes."""
SIZE_DIVISIONS: Mapping[str, Callable[..., Any]] = {"Divide": np.floor_divide, "Mod": np.mod}
"""Divisions, with NumPy functions that compute the same for sizes of at least 0 and positive divisors."""


def infer_sizes(op: Op, arrays: Sequence[Array], outputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Return the output types, with arrays of sizes as values if the operation can compute them.

    Values are booleans, and integers that fit their type, because sizes neither wrap nor round.
    """
    if not is_builtin(op) or not all(t.element.is_integer or t.element is boolean for t in outputs):
        return tuple(outputs)
    try:
        if op.type in MOVEMENTS:
            computed = op.compute(*arrays)
            results: Sequence[Array] = computed if isinstance(computed, tuple) else (computed,)
        elif op.type in SIZE_DIVISIONS:
            results = [_divide(SIZE_DIVISIONS[op.type], *arrays)]
        elif op.type in SIZE_REDUCTIONS:
            results = [_reduce(op, SIZE_REDUCTIONS[op.type], *arrays)]
        elif op.type in SIZE_FUNCTIONS and not (op.type == "Convert" and outputs[0].element is boolean):
            results = [SIZE_FUNCTIONS[op.type](*arrays)]
        else:
            return tuple(outputs)
        return tuple(map(_with_value, outputs, map(np.asarray, results)))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return tuple(outputs)


def _with_value(tensor: TensorType, value: Array) -> TensorType:
    """Return the type with an array of sizes or numbers as its value; without a value if they do not fit the type."""
    if tensor.element.is_integer:
        limits = np.iinfo(tensor.element.dtype)
        if any(v < limits.min or v > limits.max for v in value.flat):
            return tensor
    whole = value if has_sizes(value) else value.astype(tensor.element.dtype)
    return TensorType(tensor.element, Shape(*whole.shape), whole)


def _divide(divide: Callable[..., Array], a: Array, b: Array) -> Array:
    """Divide sizes of at least 0 by positive ones, for which truncation and floor agree."""
    if any(v < 0 for v in a.flat) or any(v <= 0 for v in b.flat):
        raise ArithmeticError("a size is negative")
    return divide(a, b)


def _reduce(op: Op, function: Callable[[Any, Any], Any], x: Array, axes: Array) -> Array:
    """Reduce along one axis with at least one element."""
    (axis,) = axes.reshape(-1).tolist()
    parts = np.moveaxis(x, axis, 0)
    total: Array = np.empty(parts.shape[1:], object)
    for index in np.ndindex(total.shape):
        total[index] = reduce(function, parts[(slice(None), *index)].tolist())
    return np.expand_dims(total, axis) if op.attributes["keep_dims"] else total


RATIO_ROUNDINGS: Mapping[str, Callable[[Any], Any]] = {"Ceiling": math.ceil, "Floor": math.floor}
RATIO_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Divide": np.true_divide,
    "Multiply": np.multiply,
    "Subtract": np.subtract,
}
"""Elementwise operations on floats, with NumPy functions that compute the same on arrays of ratios."""


def compute_ratios(op: Op, arrays: Sequence[Array], output: TensorType) -> Array:
    """Return a float output as an array of ratios, from inputs that are integers, sizes or ratios. Raises TypeError."""
    if not is_builtin(op) or output.element not in (f32, f64):
        raise TypeError("not a ratio")
    if op.type in RATIO_FUNCTIONS:
        return np.asarray(RATIO_FUNCTIONS[op.type](*map(ratios, arrays)))
    if op.type == "Convert":
        return ratios(arrays[0])
    if op.type in RATIO_ROUNDINGS:
        return each(RATIO_ROUNDINGS[op.type], arrays[0])
    if op.type in MOVEMENTS:
        computed = op.compute(*arrays)
        if not isinstance(computed, tuple):
            return computed
    raise TypeError(f"{op.type} is not an operation on ratios")


def truncate_ratios(array: Array, tensor: TensorType) -> TensorType:
    """Return the type of a conversion to integers, with the truncated ratios as its value if they fit."""
    return _with_value(tensor, each(math.trunc, array))
