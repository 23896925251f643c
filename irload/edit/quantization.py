"""Quantizes weights to integers of 4 and 8 bits without data, by the formulas of NNCF's weight compression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.tensor import Array

__all__ = ["MODES", "Mode", "QuantizedWeights", "quantized"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to store weights. `symmetric`: signed codes without zero points; else unsigned codes with zero points."""

    element: ElementType
    symmetric: bool

    @property
    def levels(self) -> tuple[int, int]:
        """The least and the greatest code."""
        bits = self.element.bits
        return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if self.symmetric else (0, 2**bits - 1)


MODES = {
    "int8_asym": Mode(et.u8, False),
    "int8_sym": Mode(et.i8, True),
    "int4_asym": Mode(et.u4, False),
    "int4_sym": Mode(et.i4, True),
}
"""The modes by NNCF's names."""


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeights:
    """Weights (codes − zero_point) · scale, with scales of f16. The zero points are codes; None if they are zero."""

    codes: Array
    scale: Array
    zero_point: Array | None


def quantized(weights: Array, mode: Mode, axes: Sequence[int]) -> QuantizedWeights:
    """Quantize weights with one scale per slice along `axes`.

    The codes are the nearest ones for the scales as stored, so no error is larger than with NNCF, which rounds the
    scales to f16 after it has computed the codes.
    """
    weights = np.asarray(weights, np.float32)
    low, high = mode.levels
    least = weights.min(axis=tuple(axes), keepdims=True)
    greatest = weights.max(axis=tuple(axes), keepdims=True)
    if mode.symmetric:
        # The scale is negative where the largest magnitude is positive: there is one more negative code.
        exact = _nonzero(np.where(np.abs(least) >= greatest, np.abs(least), -greatest) / np.float32(-low))
        zero = None
    else:
        least, greatest = np.minimum(least, 0), np.maximum(greatest, 0)
        exact = _nonzero((greatest - least) / np.float32(high))
        zero = np.clip(-np.rint(least / exact), low, high)
    scale = exact.astype(np.float16)
    codes = weights / np.where(scale == 0, exact, scale).astype(np.float32)
    if zero is not None:
        codes += zero
    dtype = mode.element.dtype
    codes = np.clip(np.rint(codes), low, high).astype(dtype)
    return QuantizedWeights(codes, scale, None if zero is None else zero.astype(dtype))


def _nonzero(scale: Array) -> Array:
    """The scales, with magnitudes below the machine epsilon of f32 replaced by it."""
    epsilon = np.finfo(np.float32).eps
    return np.where(np.abs(scale) < epsilon, epsilon, scale).astype(np.float32)
