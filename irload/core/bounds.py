"""Propagates bounds of values through operations, so that results of shape arithmetic are known for dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.core.element import f64
from irload.core.op import Op
from irload.core.size import has_sizes, is_size
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType
from irload.errors import IRError

FEW = 64
"""Maximum number of elements of a tensor of unknown value that gets bounds. Shapes have fewer elements."""


def bounds_of(tensor: TensorType) -> Bounds | None:
    """Return the bounds of a tensor, as i64, f32 or (for f64) f64. A known value is both lower and upper bound."""
    if tensor.bounds is not None:
        return tensor.bounds
    if tensor.value is None or not (tensor.element.is_numeric or tensor.value.dtype.kind == "b"):
        return None
    if has_sizes(tensor.value):
        return Bounds(tensor.value, tensor.value)
    wide = np.int64 if tensor.value.dtype.kind in "iub" else np.float64 if tensor.element is f64 else np.float32
    value = tensor.value.astype(wide)
    return Bounds(value, value)


def moved(op: Op, inputs: Sequence[TensorType], data: Sequence[int] = (0,)) -> list[Bounds | None] | None:
    """Return the bounds for an operation that only moves values: `compute` of the lower and of the upper bounds.

    `data`: the indices of the inputs whose values are moved; all other inputs must have known values. If one of the
    moved inputs has bounds, an integer one of up to FEW elements may be unknown: its bounds are the limits of i64.
    None if the bounds are unknown.
    """
    lower: list[Array] = []
    upper: list[Array] = []
    bounds = {k: bounds_of(inputs[k]) for k in data}
    any_number = any(b is not None and b.lower.dtype != object for b in bounds.values())
    for k, tensor in enumerate(inputs):
        known = bounds.get(k)
        if known is None and k in bounds and any_number:
            known = _any_value(tensor)
        if known is not None:
            lower.append(known.lower)
            upper.append(known.upper)
        elif tensor.value is not None:
            lower.append(tensor.value)
            upper.append(tensor.value)
        else:
            return None
    try:
        lows, highs = _computed(op, lower), _computed(op, upper)
    except (IRError, ValueError, IndexError):
        return None
    return [Bounds(a, b) for a, b in zip(lows, highs, strict=True)]


def _any_value(tensor: TensorType) -> Bounds | None:
    """Return the limits of i64 as bounds of an integer tensor of up to FEW elements; None for any other tensor."""
    shape = short_shape(tensor) if tensor.element.is_integer else None
    return None if shape is None else Bounds(np.full(shape, UNBOUNDED_LO), np.full(shape, UNBOUNDED_HI))


def short_shape(tensor: TensorType) -> tuple[int, ...] | None:
    """Return the shape of a tensor of at most FEW elements; None if it has more, or unknown or symbolic dims."""
    shape = tensor.shape.static if tensor.shape.is_static else None
    return None if shape is None or any(map(is_size, shape)) or prod(shape) > FEW else shape


def _computed(op: Op, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """`compute` on i64 arrays, regardless of the operation's element type."""
    result = op.compute(*arrays)
    return result if isinstance(result, tuple) else (result,)
