"""Compares the values of two constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from irload.core.tensor import Array

__all__ = ["ValueChange", "is_rounding", "value_change"]

BLOCK = 1 << 20
"""Elements compared at a time."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """The number of elements of a constant that differ, its size, and the distance.

    `max_abs` is the greatest difference, `relative` the root mean square of all differences over that of the values
    before; None if it is not finite, or if the shapes differ.
    """

    size: int
    differing: int
    max_abs: float | None = None
    relative: float | None = None

    def __str__(self) -> str:
        parts = [f"{self.differing:,} of {self.size:,} values differ"]
        parts += [] if self.max_abs is None else [f"by {self.max_abs:.3g} at most"]
        parts += [] if self.relative is None else [f"relative RMS {self.relative:.2g}"]
        return ", ".join(parts)


def value_change(a: Array, b: Array) -> ValueChange | None:
    """Return the difference of two constants; None if all elements are equal (bitwise if of one type)."""
    if a.shape != b.shape:
        return ValueChange(max(a.size, b.size), max(a.size, b.size))
    if "O" in a.dtype.kind + b.dtype.kind:
        differing = sum(x != y for x, y in zip(a.flat, b.flat, strict=True))
        return ValueChange(a.size, differing) if differing else None
    differing, greatest, squares, before = 0, 0.0, 0.0, 0.0
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    for start in range(0, a.size, BLOCK):
        x, y = flat_a[start : start + BLOCK], flat_b[start : start + BLOCK]
        if x.dtype == y.dtype and x.tobytes() == y.tobytes():
            before += _squares(x.astype(np.float64))
            continue
        p, q = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(all="ignore"):
            apart = np.where((p == q) | (np.isnan(p) & np.isnan(q)), 0.0, np.abs(p - q))
        changed = apart != 0
        if x.dtype == y.dtype:  # −0 for 0, another NaN
            changed |= (x.view(np.uint8).reshape(x.size, -1) != y.view(np.uint8).reshape(x.size, -1)).any(1)
        differing += int(np.count_nonzero(changed))
        greatest = max(greatest, float(np.max(apart, initial=0.0)))
        squares += _squares(apart)
        before += _squares(p)
    if not differing:
        return None
    relative = sqrt(squares / before) if before else float("inf")
    return ValueChange(a.size, differing, greatest if isfinite(greatest) else None, _finite(relative))


def is_rounding(wide: Array, narrow: Array) -> bool:
    """Whether `narrow` equals `wide` rounded to its type, saturated to its range."""
    if wide.shape != narrow.shape or narrow.dtype != np.float16:
        return False
    with np.errstate(all="ignore"):
        limit = float(np.finfo(np.float16).max)
        rounded = np.clip(wide, -limit, limit).astype(np.float16)
    return bool(np.array_equal(rounded, narrow, equal_nan=True))


def _squares(values: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.square(values[np.isfinite(values)]).sum())


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
