"""Converts compressed or fake-quantized weights to i8 with one scale per output channel."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.compressed import compressed
from irload.plan.ir.constant import Constant
from irload.plan.ir.derivations import BinaryFilters
from irload.plan.ir.program import Value
from irload.record import record

I8 = np.dtype(np.int8)
STORED = (I8, np.dtype(np.uint8))
"""The types in which files store integers."""
CHECKED = 32
"""Rows of weights whose pairs are checked at a time: most matrices with a pair that does not fit have one early."""
EXACT = 2.0**-10
"""The largest accepted distance of a weight from an integer, caused by zero points that are rounded f32 quotients."""


@record(eq=False)
class IntegerWeights:
    """Weights `value` · `scale`, with one scale per output channel. `value`: i8 in the shape of the weights."""

    value: Value
    scale: Array


@record(eq=False)
class _Stored:
    """Weights (levels(stored) − zero_point) · scale. `scale` and `zero_point` broadcast to the shape of `stored`.

    `levels` is None if the levels are the stored numbers.
    """

    stored: Constant
    scale: Array
    zero_point: Array
    levels: Callable[[Array], Array] | None

    def integers(self, array: Array) -> Array:
        """Return the integers of the stored array. Raises ValueError if they are not i8."""
        if self.levels is None and array.dtype == I8 and not self.zero_point.any():
            return array
        levels = array.astype(np.float32) if self.levels is None else self.levels(array)
        numbers = levels - self.zero_point
        nearest = np.rint(numbers)
        if np.abs(numbers - nearest).max(initial=0) > EXACT or np.abs(nearest + 0.5).max(initial=0) > 128:
            raise ValueError("the weights are not i8")
        return nearest.astype(I8)


def integer_weights(weights: Value, channels: int, *, last: bool = False) -> IntegerWeights | None:
    """Return constant weights as i8, or None if they are not stored as integers with one scale per output channel.

    Filters of a BinaryConvolution are integers, too. The output channels are the first axes of the weights, or the last
    axis if `last`.
    """
    source = weights.source
    if source is not None and source.derivation is not None and isinstance(source.derivation[1], BinaryFilters):
        bits = source.derived("i8", weights.shape, lambda array: array.astype(I8), dtype=I8)
        return IntegerWeights(Value(weights.shape, I8, bits, name=weights.name), np.ones(channels, np.float32))
    if source is None or source.root.shape not in (weights.shape, weights.shape[1:]):
        return None
    match = _compressed(source.root) or _fake_quantized(source.root)
    if match is None or prod(match.stored.shape) != weights.size:
        return None
    scale = _by_channel(match.scale, match.stored.shape, channels, last=last)
    if scale is None or not np.all(np.isfinite(scale) & (scale > 0)):
        return None
    # Weights that share a stored array may differ in their zero points, so the root is part of the key.
    key, shape = ("i8", weights.shape, source.root), weights.shape
    integers = match.stored.derived(key, shape, lambda array: match.integers(array).reshape(shape), dtype=I8)
    try:
        _ = integers.array
    except ValueError:
        return None
    return IntegerWeights(Value(shape, I8, integers, name=weights.name), scale)


def pairs_fit(weights: Array, axis: int) -> bool:
    """True if a · v + b · w fits into i16 for all u8 a and b, and all weights v, w at indices 2i, 2i + 1 of an axis."""
    moved = np.atleast_2d(np.moveaxis(weights, axis, -1))
    return all(map(_pairs_fit, np.array_split(moved, range(CHECKED, len(moved), CHECKED))))


def _pairs_fit(weights: Array) -> bool:
    even = weights.shape[-1] // 2 * 2
    first, second = weights[..., :even:2].astype(np.int16), weights[..., 1:even:2].astype(np.int16)
    most = np.maximum(first, 0) + np.maximum(second, 0)
    least = np.minimum(first, 0) + np.minimum(second, 0)
    return bool(most.max(initial=0) <= 128 and least.min(initial=0) >= -128)


def _compressed(constant: Constant) -> _Stored | None:
    """Match Convert → [Subtract] → Multiply of i8 or u8."""
    form = compressed(constant)
    if form is None or form.scale is None or form.stored.dtype not in STORED:
        return None
    zero = np.zeros(1, np.float32) if form.zero_point is None else form.zero_point.array.astype(np.float32)
    return _Stored(form.stored, form.scale.array, zero, None)


def _fake_quantized(constant: Constant) -> _Stored | None:
    """Match FakeQuantize → [Reshape] of constant data."""
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

    def levels(array: Array) -> Array:
        clamped = np.clip(array.astype(np.float32), low, high)
        return np.rint((clamped - low) / (high - low) * steps)

    return _Stored(stored, scale, -out_low / scale, levels)


def _by_channel(scale: Array, shape: tuple[int, ...], channels: int, *, last: bool) -> Array | None:
    """Return one scale per output channel; None if the scale varies along other axes."""
    if scale.size == 1:
        return np.full(channels, scale.reshape(-1)[0], np.float32)
    if scale.size != channels:
        return None
    full = (*(1,) * (len(shape) - scale.ndim), *scale.shape)
    axes = [k for k, n in enumerate(full) if n > 1]
    channel_axes = [len(shape) - 1] if last else list(range(axes[-1] + 1))
    is_per_channel = prod(shape[k] for k in channel_axes) == channels and all(k in channel_axes for k in axes)
    return scale.reshape(-1).astype(np.float32) if is_per_channel else None
