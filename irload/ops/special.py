"""Special functions missing in NumPy: erf, erfc, and the inverse of erf, accurate to the last bits of their dtype."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.chebyshev import chebval

from irload.core.tensor import Array

# Chebyshev coefficients, computed with 60 digits: of erf(x) / x in 2x² − 1 on |x| ≤ 1, and of (1 + 2x) exp(x²) erfc(x)
# in (x − 3.75) / (x + 3.75) on x ≥ 0. fmt: off
_NEAR = (
    0.9754769393826541,
    -0.14226120510371365,
    0.010035582187599796,
    -0.0005768764699767485,
    2.741993125219606e-05,
    -1.1043175507344507e-06,
    3.8488755420345036e-08,
    -1.1808582533875466e-09,
    3.2334215826050907e-11,
    -7.991015947004549e-13,
    1.7990725113961456e-14,
    -3.718635487818693e-16,
    7.103599003714253e-18,
    -1.2612455119155226e-19,
)
_FAR = (
    1.1775789345674017,
    -0.004590054580646478,
    -0.08424913336651792,
    0.05920993999819189,
    -0.026658668435305753,
    0.009074997670705265,
    -0.002413163540417608,
    0.0004907758365258086,
    -6.916973302501207e-05,
    4.13902798607301e-06,
    7.74038306619849e-07,
    -2.1886401049234397e-07,
    1.076499946567091e-08,
    4.521959811218287e-09,
    -7.754400208831351e-10,
    -6.318088340886684e-11,
    2.86879501093067e-11,
    1.9455868545777385e-13,
    -9.654696748433425e-13,
    3.252548148148935e-14,
    3.347811948287022e-14,
    -1.8645628804174044e-15,
    -1.2507950530676306e-15,
    7.418235256653443e-17,
    5.0681489047256867e-17,
    -2.2370566609774595e-18,
    -2.1873429463382478e-18,
    2.6766325319590265e-20,
)
# fmt: on
_F32_TERMS = 8, 15
"""The number of terms of each series that f32 needs."""
_BLOCK = 1 << 14
"""Elements per block, so that intermediates stay in the cache."""


def erf(x: Array) -> Array:
    """The error function of floats, in their dtype; computed in f64."""
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        result[start : start + _BLOCK] = _erf(flat[start : start + _BLOCK])
    return result.reshape(x.shape)


def _erf(x: Array) -> Array:
    size = np.abs(x).astype(np.float64)
    far = 1 - _erfc_positive(size, _far_terms(x))
    return np.where(size < 1, x * _slope(size, x), np.copysign(far, x))


def erfc(x: Array) -> Array:
    """1 − erf(x) without cancellation for large x."""
    size = np.abs(x).astype(np.float64)
    far = _erfc_positive(size, _far_terms(x))
    return np.where(size < 0.5, 1 - x * _slope(size, x), np.where(x < 0, 2 - far, far)).astype(x.dtype)


def erfinv(y: Array) -> Array:
    """The x whose erf is y: ±∞ at ±1, NaN beyond; computed in f64."""
    size = np.abs(y).astype(np.float64)
    rest = 1 - size
    # Winitzki's formula is accurate to 1 %; each Halley step triples the number of correct digits.
    log = np.log(rest * (1 + size))
    half = 2 / (np.pi * 0.147) + log / 2
    x = np.sqrt(np.sqrt(half * half - log / 0.147) - half)
    for _ in range(3):
        # Near 1, erfc determines x more accurately than erf.
        error = np.where(size < 0.5, size - erf(x), erfc(x) - rest)
        step = error * (np.sqrt(np.pi) / 2) * np.exp(x * x)
        x = np.where(error == 0, x, x + step / (1 - x * step))
    x = np.where(size < 1, x, np.where(size == 1, np.inf, np.nan))
    return np.copysign(x, y).astype(y.dtype)


def _slope(size: Array, x: Array) -> Array:
    """erf(x) / x for |x| < 1."""
    near = np.minimum(size, 1)
    return chebval(2 * near * near - 1, _NEAR[: _F32_TERMS[0]] if x.dtype == np.float32 else _NEAR)


def _far_terms(x: Array) -> tuple[float, ...]:
    return _FAR[: _F32_TERMS[1]] if x.dtype == np.float32 else _FAR


def _erfc_positive(x: Array, terms: tuple[float, ...]) -> Array:
    x = np.minimum(x, 100.0)  # erfc is 0 in f64 beyond, and infinities would give NaN
    return np.exp(-x * x) * chebval((x - 3.75) / (x + 3.75), terms) / (1 + 2 * x)
