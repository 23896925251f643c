"""Measures the distance of two tensors in chunks, which requires little additional memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite, log10, sqrt

import numpy as np

from irload.core.tensor import Array

__all__ = ["Measures", "identical", "measure", "rms"]

CHUNK = 1 << 15
"""Elements widened to f64 at a time: a chunk fits the cache."""
ROW = 1 << 13
"""Elements of one dot product: below the size at which BLAS starts threads."""
LEAST = 1e-300
"""Added to divisors, so that 0/0 is 0. Of other divisors, it changes only tiny ones in f64."""
FAR = 1e200
"""A quotient larger than this has a divisor of 0, to which LEAST was added."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The errors of one tensor against another of its shape, in f64.

    `needed` is the smallest tolerance that passes: the greatest |a − b| / (|b| + rms(b)). `beyond` counts elements for
    which this ratio exceeds the tolerance. `against_std` is the root mean square error over the standard deviation of
    b, `cosine` the cosine of the angle between both, `psnr` in decibels of the greatest |b|; None if undefined.
    Elements that are NaN in both, or the same infinity, are equal; if only one is, `needed` is infinite, and the other
    measures ignore the element.
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
        """True if no element is beyond the tolerance."""
        return not self.beyond


@np.errstate(all="ignore")
def measure(a: Array, b: Array, tolerance: float, floor: float = 0.0) -> Measures:
    """Measure the errors of `a` against `b`, of one shape. Differences up to `floor` count as zero for `needed`."""
    if identical(a, b):
        return Measures(0, 0, 0, 0, 0.0, 1.0, None, 0, 0, b.size)
    if a.dtype == object or b.dtype == object:
        differ = int((a != b).sum())
        return Measures(0, 0, 0, 0, None, None, None, differ, inf if differ else 0, b.size)
    sums = _Sums(tolerance, floor, *_squares(b), is_wide=np.float64 in (a.dtype, b.dtype))
    large = a.dtype.kind in "iu" and b.dtype.kind in "iu" and max(a.itemsize, b.itemsize) == 8
    scratch = np.empty((3, min(CHUNK, b.size)))
    for p, q in zip(_chunks(a), _chunks(b), strict=True):
        x, y, quotient = scratch if p.size == CHUNK else scratch[:, : p.size]
        x[...], y[...] = p, q
        # Distinct integers beyond 2⁵³ may round to the same f64.
        sums.add(x, y, quotient, hidden=(p != q) & (x == y) if large else None)
    return sums.measures(b.size)


@np.errstate(all="ignore")
def rms(array: Array) -> float:
    """Return the root mean square of the finite elements; 0 for text and for empty tensors."""
    if array.dtype == object or not array.size:
        return 0.0
    count, square = _squares(array)
    return sqrt(square / count) if count else 0.0


def identical(a: Array, b: Array) -> bool:
    """True if two arrays have equal types, shapes and bits; for strings, if they are the same array."""
    if a is b:
        return True
    if a.dtype != b.dtype or a.dtype == object or a.shape != b.shape:
        return False
    kind = f"u{a.itemsize}"
    return all(bool((x.view(kind) == y.view(kind)).all()) for x, y in zip(_chunks(a), _chunks(b), strict=True))


class _Sums:
    """Partial sums of the measures, accumulated over chunks. `count` and `square` refer to the finite elements of b."""

    def __init__(self, tolerance: float, floor: float, count: int, square: float, *, is_wide: bool) -> None:
        self.tolerance, self.floor, self.is_wide = tolerance, floor, is_wide
        self.count, self.square, self.scale = count, square, sqrt(square / count) if count else 0.0
        self.total = self.greatest = 0.0  # of b
        self.max_abs = self.max_rel = self.needed = 0.0
        self.sum_abs = self.sum_rel = self.sum_square = self.dot = self.a_square = 0.0
        self.beyond = self.odd = 0

    def add(self, x: Array, y: Array, quotient: Array, hidden: Array | None) -> None:
        """Add a chunk of a and b in f64; overwrites all three. `hidden`: elements that differ only before widening."""
        x_square, dot, total = _dot(x, x), _dot(x, y), _sum(y)
        if not isfinite(x_square + dot + total):
            finite = np.isfinite(y)
            both = np.isfinite(x) & finite
            self.odd += int(np.count_nonzero(~both & (x != y) & ~(np.isnan(x) & np.isnan(y))))
            self.greatest = max(self.greatest, float(np.abs(y[finite]).max(initial=0.0)))
            total = _sum(y[finite])
            x, y, hidden = x[both], y[both], None
            x_square, dot, quotient = _dot(x, x), _dot(x, y), quotient[: x.size]
        self.a_square, self.dot, self.total = self.a_square + x_square, self.dot + dot, self.total + total
        if not x.size:
            return
        error = np.abs(np.subtract(x, y, out=x), out=x)
        if hidden is not None:
            error[hidden] = 1.0
        size = np.abs(y, out=y)
        self.greatest = max(self.greatest, _max(size))
        most = _max(error)
        if most:
            self.max_abs = max(self.max_abs, most)
            self.sum_abs, self.sum_square = self.sum_abs + _sum(error), self.sum_square + _dot(error, error)
            self._add_relative(error, size, quotient)
            if most - self.floor > min(self.needed, self.tolerance) * self.scale * (1 - 1e-12):
                self._add_share(error, size, quotient)

    def _add_relative(self, error: Array, size: Array, relative: Array) -> None:
        """Accumulate |a − b| / |b|: 0 if both are 0, infinite if only b is 0."""
        np.divide(error, np.add(size, LEAST, out=relative), out=relative)
        greatest = _max(relative)
        if greatest > FAR or self.is_wide:
            if self.is_wide:
                np.divide(error, size, out=relative)
            zero = size == 0
            relative[zero] = 0.0
            greatest = inf if (error[zero] > 0).any() else _max(relative)
        self.max_rel, self.sum_rel = max(self.max_rel, greatest), self.sum_rel + _sum(relative)

    def _add_share(self, error: Array, size: Array, share: Array) -> None:
        """Accumulate (|a − b| − floor) / (|b| + rms(b)), whose maximum is `needed`."""
        over = np.subtract(error, self.floor, out=error) if self.floor else error
        if self.scale:
            np.divide(over, np.add(size, self.scale, out=share), out=share)
        else:
            share = np.divide(over, size, out=np.where(over > 0, inf, 0.0), where=size > 0)
        greatest = _max(share)
        self.needed = max(self.needed, greatest)
        if greatest > self.tolerance:
            self.beyond += int(np.count_nonzero(share > self.tolerance))

    def measures(self, size: int) -> Measures:
        """Return the measures of all chunks, `size` elements in total."""
        number = max(self.count, 1)
        mean = self.total / number
        spread = self.square / number - mean * mean
        root = sqrt(self.sum_square / number)
        length = sqrt(self.a_square) * sqrt(self.square)
        distinct = 0 < root < inf and self.greatest > 0
        return Measures(
            self.max_abs,
            self.sum_abs / number,
            self.max_rel,
            self.sum_rel / number,
            root / sqrt(spread) if 0 < spread < inf else None,
            self.dot / length if 0 < length < inf else None,
            20 * log10(self.greatest / root) if distinct else None,
            self.beyond + self.odd,
            inf if self.odd else self.needed,
            size,
        )


def _squares(array: Array) -> tuple[int, float]:
    """Return the number of finite elements and the sum of their squares."""
    count, square = 0, 0.0
    scratch = np.empty(min(CHUNK, array.size))
    for chunk in _chunks(array):
        x = scratch[: chunk.size]
        x[...] = chunk
        partial = _dot(x, x)
        if not isfinite(partial):
            x = x[np.isfinite(x)]
            partial = _dot(x, x)
        count, square = count + x.size, square + partial
    return count, square


def _dot(x: Array, y: Array) -> float:
    """Return the sum of products, computed in rows."""
    if x.size <= ROW:
        return float(np.dot(x, y))
    whole = x.size // ROW * ROW
    rows = np.vecdot(x[:whole].reshape(-1, ROW), y[:whole].reshape(-1, ROW))
    return float(np.dot(x[whole:], y[whole:])) + float(rows.sum())


def _sum(x: Array) -> float:
    return float(np.add.reduce(x))


def _max(x: Array) -> float:
    return float(np.maximum.reduce(x))


def _chunks(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    return (flat[k : k + CHUNK] for k in range(0, flat.size, CHUNK))
