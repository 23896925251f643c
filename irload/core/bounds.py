"""Carrying the bounds of integer tensors through operations, so that shape arithmetic resolves on dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.op import Op
from irload.core.tensor import UNBOUNDED_HI, UNBOUNDED_LO, Array, Bounds, TensorType
from irload.errors import IRError


def bounds_of(tensor: TensorType) -> Bounds | None:
    """The bounds of a tensor; those of a known integer value are that value."""
    if tensor.bounds is not None:
        return tensor.bounds
    if tensor.value is None or tensor.value.dtype.kind not in "iub":
        return None
    value = tensor.value.astype(np.int64)
    return Bounds(value, value)


def moved(op: Op, inputs: Sequence[TensorType], data: Sequence[int] = (0,)) -> list[Bounds | None] | None:
    """Bounds for an operation that only moves values: `compute` on the lower, then on the upper bounds of its data.

    `data` are the positions of the inputs whose values move; all others must be known exactly.
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
    """`compute` on plain i64 arrays, whatever the operation's own element type is."""
    result = op.compute(*arrays)
    return result if isinstance(result, tuple) else (result,)


def monotone(
    a: TensorType, b: TensorType, function: Callable[[float, float], float], *, falls_in_b: bool = False
) -> list[Bounds | None] | None:
    """Bounds for an elementwise function that rises in `a` and rises (or falls) in `b`, unbounded ends included."""
    left, right = bounds_of(a), bounds_of(b)
    if left is None or right is None:
        return None
    low, high = (right.upper, right.lower) if falls_in_b else (right.lower, right.upper)
    try:
        return [Bounds(_apply(function, left.lower, low), _apply(function, left.upper, high))]
    except (ValueError, ArithmeticError):
        return None


def _apply(function: Callable[[float, float], float], a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    values = [
        _finite(function(_extended(x), _extended(y)))
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    ]
    return np.array(values, np.int64).reshape(a.shape)


def _extended(value: int) -> float:
    """The integer itself, or an infinity for the integers that stand for one."""
    return float("inf") if value == UNBOUNDED_HI else float("-inf") if value == UNBOUNDED_LO else value


def _finite(value: float) -> int:
    if value != value:
        raise ValueError("no bound")
    return UNBOUNDED_HI if value >= UNBOUNDED_HI else UNBOUNDED_LO if value <= UNBOUNDED_LO else int(value)
