"""Integers as operands of real arithmetic: computed in f32, then rounded, as in OpenVINO's CPU plugin.

The plugin supports i32, i8 and u8. It stores other integers as i32 (their low 32 bits) and booleans as u8. Results are
rounded to the nearest integer, ties to even. NaN and values outside i32 become the lowest i32. Results of type i8 or u8
are clamped to its limits.
"""

from __future__ import annotations

import numpy as np

from irload.core.element import ElementType
from irload.core.tensor import Array

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def as_plugin_integers(x: Array) -> Array:
    """Integers or booleans in the type in which the plugin stores them: i32, i8 or u8."""
    if x.dtype.kind == "b":
        return x.view(np.uint8)
    return x if x.dtype in _BYTES else x.astype(np.int32)


def as_real(x: Array) -> Array:
    """Integers or booleans as f32; other arrays unchanged."""
    return as_plugin_integers(x).astype(np.float32) if x.dtype.kind in "iub" else x


def round_to(x: Array, to: ElementType) -> Array:
    """Round real numbers to values of an integer type, or to booleans."""
    x = np.rint(x)
    fits = (x >= -(2.0**31)) & (x < 2.0**31)
    return narrow(np.where(fits, x, -(2.0**31)).astype(np.int64), to)


def narrow(x: Array, to: ElementType) -> Array:
    """Convert results in i64 to the type in which the plugin stores `to`, then to `to`."""
    inner = as_plugin_integers(np.zeros(0, to.dtype)).dtype
    if inner in _BYTES:
        limits = np.iinfo(inner)
        x = np.clip(x, limits.min, limits.max)
    return wrap(x.astype(inner), to)


def wrap(values: Array, element: ElementType) -> Array:
    """Reduce integers to the element's width: its low bits, in two's complement if it is signed."""
    values = values.astype(element.dtype, copy=False)
    if element.bits >= 8:
        return values
    sign = element.dtype.type(1 << (element.bits - 1))
    low = values & element.dtype.type((1 << element.bits) - 1)
    return (low ^ sign) - sign if element.is_signed else low


def reorder(x: Array, to: ElementType) -> Array:
    """Convert numbers or booleans to another type: rounded to nearest, and clamped to the plugin's range."""
    if x.dtype.kind in "iub":
        x = as_plugin_integers(x)
    if to.is_float:
        return x.astype(np.float32).astype(to.dtype)
    inner = as_plugin_integers(np.zeros(0, to.dtype)).dtype
    limits = np.iinfo(inner)
    low, high = float(limits.min), float(limits.max)
    if x.dtype.kind in "iu":
        return wrap(np.clip(x.astype(np.int64), limits.min, limits.max).astype(inner), to)
    x = x.astype(np.float32)
    high = min(high, 2147483520.0)  # the greatest f32 that fits i32
    return wrap(np.rint(np.clip(np.where(np.isnan(x), np.float32(low), x), low, high)).astype(inner), to)
