"""Integers in place of real numbers, as the runtime's CPU plugin takes them: computed in f32, then rounded.

The plugin knows i32, i8 and u8; other integers become i32, of which they keep the low bits, and boolean is u8. Results
are rounded to the nearest integer, ties to even. What does not fit an i32, and NaN, becomes the smallest of them, and
what then does not fit a byte is cut to its limits.
"""

from __future__ import annotations

import numpy as np

from irload.core.element import ElementType
from irload.core.tensor import Array

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def held(x: Array) -> Array:
    """Integers or booleans in the type that the plugin holds them in."""
    if x.dtype.kind == "b":
        return x.view(np.uint8)
    return x if x.dtype in _BYTES else x.astype(np.int32)


def as_real(x: Array) -> Array:
    """Integers or booleans as f32; other arrays as they are."""
    return held(x).astype(np.float32) if x.dtype.kind in "iub" else x


def rounded(x: Array, to: ElementType) -> Array:
    """Real numbers as values of an integer type, or as booleans."""
    x = np.rint(x)
    fits = (x >= -(2.0**31)) & (x < 2.0**31)
    return fitted(np.where(fits, x, -(2.0**31)).astype(np.int64), to)


def fitted(x: Array, to: ElementType) -> Array:
    """Results, as i64, in the type that the plugin would hold them in, then in `to`."""
    inner = held(np.zeros(0, to.dtype)).dtype
    if inner in _BYTES:
        limits = np.iinfo(inner)
        x = np.clip(x, limits.min, limits.max)
    return wrapped(x.astype(inner), to)


def wrapped(values: Array, element: ElementType) -> Array:
    """Integers cut to the element's width: the low bits, the highest of them being the sign where it has one."""
    values = values.astype(element.dtype, copy=False)
    if element.bits >= 8:
        return values
    sign = element.dtype.type(1 << (element.bits - 1))
    low = values & element.dtype.type((1 << element.bits) - 1)
    return (low ^ sign) - sign if element.is_signed else low


def reordered(x: Array, to: ElementType) -> Array:
    """Numbers or booleans as another type of numbers: rounded to the nearest, and cut to what the plugin holds."""
    if x.dtype.kind in "iub":
        x = held(x)
    if to.is_float:
        return x.astype(np.float32).astype(to.dtype)
    inner = held(np.zeros(0, to.dtype)).dtype
    limits = np.iinfo(inner)
    low, high = float(limits.min), float(limits.max)
    if x.dtype.kind in "iu":
        return wrapped(np.clip(x.astype(np.int64), limits.min, limits.max).astype(inner), to)
    x = x.astype(np.float32)
    high = min(high, 2147483520.0)  # the greatest f32 that fits an i32
    return wrapped(np.rint(np.clip(np.where(np.isnan(x), np.float32(low), x), low, high)).astype(inner), to)
