"""Conversions between element types with the same result on every machine.

In NumPy the result of casting a float that does not fit an integer depends on the processor. Here it is the result of
OpenVINO's x86 casts: the smallest integer of the register, whose low bits narrow types keep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.half import widened
from irload.core.packing import NF4_TABLE
from irload.core.rounding import wrap
from irload.core.tensor import Array


def to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """f32 or f64 as integers of `dtype`: truncated towards zero, then wrapped.

    NaN and values outside the cast's register (32 bits wide, or 64 for 64-bit types) become its smallest integer.
    """
    x = np.trunc(x)
    bits = 8 * dtype.itemsize
    if bits < 32 or dtype.kind == "i":
        return _to_signed(x, max(bits, 32)).astype(dtype)
    half = x.dtype.type(2.0 ** (bits - 1))
    low, high = _to_signed(x, bits), _to_signed(x - half, bits)
    return np.where(x < half, low, high ^ np.iinfo(high.dtype).min).astype(dtype)


def _to_signed(x: Array, bits: int) -> Array:
    limit = x.dtype.type(2.0 ** (bits - 1))
    fits = (x >= -limit) & (x < limit)
    return np.where(fits, x, -limit).astype(np.int32 if bits == 32 else np.int64)


def convert(x: Array, to: ElementType) -> Array:
    """`x`, in any storage dtype, as values of `to`; Convert documents the rules."""
    if to is et.string or x.dtype == object:
        return x
    if to is et.boolean:
        return x != 0
    if x.dtype == np.float16 and to is et.f32:
        return widened(x)
    if x.dtype.kind not in "iub" and x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    if to.is_integer:
        # Types narrower than a byte: the low bits of the value as i32.
        x = to_integer(x, to.dtype if to.bits >= 8 else np.dtype(np.int32)) if x.dtype.kind == "f" else x
        return wrap(x, to)
    if to is et.nf4:
        return to_nf4(x)
    if to is et.f8e8m0:
        return to_powers(x)
    return (x.astype(np.float32) if to.bits <= 16 else x).astype(to.dtype)


def to_nf4(x: Array) -> Array:
    """Each value rounded to the nearest of the 16 nf4 values."""
    middle = (NF4_TABLE[1:] + NF4_TABLE[:-1]) / 2
    return NF4_TABLE[np.searchsorted(middle, x.astype(np.float32))]


def to_powers(x: Array) -> Array:
    """f8e8m0: the nearest power of two from 2^−127 to 2^127, ties to the even exponent code; NaN is preserved."""
    x = x.astype(np.float64)
    mantissa, exponent = np.frexp(np.minimum(x, 2.0**127))  # mantissa in ½..1
    code = exponent + 126
    code += (mantissa > 0.75) | ((mantissa == 0.75) & (code % 2 == 1))
    code = np.where(np.isnan(x), 255, np.where(x > 0, np.clip(code, 0, 254), 0))
    return code.astype(np.uint8).view(et.f8e8m0.dtype)
