"""How far two tensors are apart: measured in chunks, so that it takes little memory beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log10, sqrt

import numpy as np

from irload.core.tensor import Array

__all__ = ["Measures", "measure", "rms"]

CHUNK = 1 << 15
"""Elements that are widened to f64 at a time: so few that they stay in the cache."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The errors of one tensor against another of its shape, in f64.

    `needed` is the smallest tolerance that would pass: the greatest |a − b| / (|b| + rms(b)). `beyond` counts elements
    whose share of it is more than the tolerance. `against_std` is the root mean square error over the standard
    deviation of b, `cosine` that of the angle between both, `psnr` in decibels of the greatest |b|; None where these
    are not defined. Elements that are NaN in both, or the same infinity, are equal; where only one is, `needed` is
    infinite, and the other measures leave them out.
    """

    max_abs: float
    mean_abs: float
    max_rel: float
    mean_rel: float
    against_std: float | None
    cosine: float | None
    psnr: float | None
    beyond: int
    needed: float
    size: int

    @property
    def passed(self) -> bool:
        """True where no element is beyond the tolerance."""
        return not self.beyond


def measure(a: Array, b: Array, tolerance: float, floor: float = 0.0) -> Measures:
    """The errors of `a` against `b`, of one shape. Differences up to `floor` count as none for `needed`."""
    if _same(a, b):
        return Measures(0, 0, 0, 0, 0.0, 1.0, None, 0, 0, b.size)
    if a.dtype == object or b.dtype == object:
        differ = int((a != b).sum())
        return Measures(0, 0, 0, 0, None, None, None, differ, inf if differ else 0, b.size)
    count, total, square, greatest = 0, 0.0, 0.0, 0.0
    for y in _chunk(b):
        y = y if np.isfinite(y).all() else y[np.isfinite(y)]
        if y.size:
            count, total, square = count + y.size, total + float(y.sum()), square + _dot(y, y)
            greatest = max(greatest, float(np.abs(y).max()))
    scale = sqrt(square / count) if count else 0.0
    max_abs = max_rel = needed = sum_abs = sum_rel = sum_square = dot = a_square = 0.0
    beyond = odd = 0
    for x, y in zip(_chunk(a), _chunk(b), strict=True):
        both = np.isfinite(x) & np.isfinite(y)
        if not both.all():
            differ = int((~both & ~((x == y) | (np.isnan(x) & np.isnan(y)))).sum())
            odd += differ
            x, y = x[both], y[both]
            if not x.size:
                continue
        error, size = np.abs(x - y), np.abs(y)
        relative = np.divide(error, size, out=np.where(error > 0, inf, 0.0), where=size > 0)
        over = np.maximum(error - floor, 0)
        share = np.divide(over, size + scale, out=np.where(over > 0, inf, 0.0), where=size + scale > 0)
        max_abs, max_rel = max(max_abs, float(error.max())), max(max_rel, float(relative.max()))
        needed = max(needed, float(share.max()))
        beyond += int((share > tolerance).sum())
        sum_abs, sum_square = sum_abs + float(error.sum()), sum_square + _dot(error, error)
        sum_rel += float(relative[np.isfinite(relative)].sum())
        dot, a_square = dot + _dot(x, y), a_square + _dot(x, x)
    number = max(count, 1)
    deviation = sqrt(max(square / number - (total / number) ** 2, 0.0))
    root = sqrt(sum_square / number)
    length = sqrt(a_square) * sqrt(square)
    return Measures(
        max_abs,
        sum_abs / number,
        max_rel,
        sum_rel / number,
        root / deviation if deviation else None,
        dot / length if length else None,
        20 * log10(greatest / root) if root and greatest else None,
        beyond + odd,
        inf if odd else needed,
        b.size,
    )


def rms(array: Array) -> float:
    """The root mean square of the finite elements; 0 for text and for nothing."""
    if array.dtype == object or not array.size:
        return 0.0
    count, square = 0, 0.0
    for x in _chunk(array):
        x = x if np.isfinite(x).all() else x[np.isfinite(x)]
        count, square = count + x.size, square + _dot(x, x)
    return sqrt(square / count) if count else 0.0


def _dot(x: Array, y: Array) -> float:
    """The sum of products, without BLAS, which would wake threads for each chunk."""
    return float(np.einsum("i,i", x, y))


def _same(a: Array, b: Array) -> bool:
    return a is b or (a.dtype == b.dtype and a.dtype.kind != "V" and bool(np.array_equal(a, b)))


def _chunk(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    return (flat[k : k + CHUNK].astype(np.float64) for k in range(0, flat.size, CHUNK))
