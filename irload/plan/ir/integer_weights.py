"""Weights as i8 and one scale per output channel, from constants that a file stores in bytes or fake-quantizes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.compressed import compressed
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Value
from irload.record import record

I8 = np.dtype(np.int8)


@record(eq=False)
class IntegerWeights:
    """Weights `value` · `scale`, with one scale per output channel. `value`: i8 in the shape of the weights."""

    value: Value
    scale: Array


@record(eq=False)
class _Stored:
    """Weights (integers(stored) − zero point) · scale, whose parameters broadcast to the shape of `stored`."""

    stored: Constant
    scale: Array
    zero_point: Array
    integers: Callable[[Array], Array]


def integer_weights(weights: Value, channels: int, *, last: bool = False) -> IntegerWeights | None:
    """Return the integers of constant weights, whose first axes, or whose last axis, are those of the output.

    None if the weights are not stored as integers with one scale per channel, or are no i8.
    """
    source = weights.source
    if source is None or source.root.shape != weights.shape and source.root.shape != weights.shape[1:]:
        return None
    found = _compressed(source.root) or _fake_quantized(source.root)
    if found is None or prod(found.stored.shape) != weights.size:
        return None
    scale = _by_channel(found.scale, found.stored.shape, channels, last=last)
    if scale is None or not np.all(np.isfinite(scale) & (scale > 0)):
        return None

    def as_bytes(array: Array) -> Array:
        numbers = found.integers(array) - found.zero_point
        nearest = np.rint(numbers)
        is_exact = np.all(np.abs(numbers - nearest) <= 0.01) and nearest.min() >= -128 and nearest.max() <= 127
        return (nearest if is_exact else np.full(array.shape, -128)).astype(I8).reshape(weights.shape)

    key = ("i8", weights.shape)
    integers = found.stored.derived(key, weights.shape, as_bytes, dtype=I8)
    return IntegerWeights(Value(weights.shape, I8, integers, name=weights.name), scale)


def pairs_fit(weights: Array, axis: int) -> bool:
    """True if 255 · (|w0| + |w1|) fits into i16 for all pairs of neighbours along an axis, counted from 0."""
    moved = np.moveaxis(weights, axis, -1)
    even = moved.shape[-1] // 2 * 2
    sizes = np.abs(moved[..., :even], dtype=np.int16)
    return bool((sizes[..., ::2] + sizes[..., 1::2]).max(initial=0) <= 128)


def _compressed(constant: Constant) -> _Stored | None:
    """Convert → [Subtract] → Multiply of bytes."""
    found = compressed(constant)
    if found is None or found.scale is None or found.stored.dtype not in (np.int8, np.uint8):
        return None
    zero = np.zeros(1, np.float32) if found.zero_point is None else found.zero_point.array.astype(np.float32)
    return _Stored(found.stored, found.scale.array, zero, lambda stored: stored.astype(np.float32))


def _fake_quantized(constant: Constant) -> _Stored | None:
    """FakeQuantize, before Reshape, of constant data."""
    recipe = constant.recipe
    if recipe is not None and recipe.op.type == "Reshape":
        recipe = recipe.inputs[0].recipe
    if recipe is None or recipe.op.type != "FakeQuantize":
        return None
    data, *bounds = recipe.inputs
    low, high, out_low, out_high = (b.array.astype(np.float32) for b in bounds)
    steps = np.float32(recipe.op.attributes["levels"] - 1)
    if not 1 <= steps <= 255 or np.any(high <= low) or recipe.op.attributes["auto_broadcast"] == "pdpd":
        return None
    stored = data
    if data.recipe is not None and data.recipe.op.type == "Convert":
        stored = data.recipe.inputs[0]
    scale = (out_high - out_low) / steps
    if np.any(scale <= 0):
        return None

    def integers(array: Array) -> Array:
        clamped = np.clip(array.astype(np.float32), low, high)
        return np.rint((clamped - low) / (high - low) * steps)

    return _Stored(stored, scale, -out_low / scale, integers)


def _by_channel(scale: Array, shape: tuple[int, ...], channels: int, *, last: bool) -> Array | None:
    """Return one scale per channel; None if it varies along other axes."""
    if scale.size == 1:
        return np.full(channels, scale.reshape(-1)[0], np.float32)
    if scale.size != channels:
        return None
    full = (*(1,) * (len(shape) - scale.ndim), *scale.shape)
    axes = [k for k, n in enumerate(full) if n > 1]
    own = [len(shape) - 1] if last else list(range(axes[-1] + 1))
    is_own = prod(shape[k] for k in own) == channels and all(k in own for k in axes)
    return scale.reshape(-1).astype(np.float32) if is_own else None
