"""Propagate bounds of values through operations, so that results of shape arithmetic are known for dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.element import f64
from irload.core.op import Op
from irload.core.size import has_sizes
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import IRError


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

    `data`: the indices of the inputs whose values are moved. All other inputs must have known values.
    """
    lower: list[Array] = []
    upper: list[Array] = []
    for k, tensor in enumerate(inputs):
        known = bounds_of(tensor) if k in data else None
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


def _computed(op: Op, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """`compute` on i64 arrays, regardless of the operation's element type."""
    result = op.compute(*arrays)
    return result if isinstance(result, tuple) else (result,)
