"""Sine and cosine of any f32. Errors are relative to the result, as in vector_math.py: 1.2e-7.

An argument is m·2^k with m below 2²⁴. 2^k modulo 2π is looked up as the sum of two f64, so that large arguments are
reduced accurately.
"""

from __future__ import annotations

import struct
from functools import cache

from irload.plan.backends.llvm.builder import Vec
from irload.plan.backends.llvm.vector_math import polynomial

_PI = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89
"""π · 2²⁵⁶."""
_POWERS = 106
"""The number of values of k, for all f32 including infinity."""
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_ROUNDING = 6755399441055744.0
"""1.5 · 2⁵²: adding it to an f64 rounds the f64 to an integer, which is then in the lowest bits of the sum."""
_SINE = (-0.16666655242443085, 0.008332177996635437, -0.00019517235341481864)
"""(sin r − r) / r³ as a polynomial in r² for |r| ≤ π/4, error 4e-9."""
_COSINE = (0.0416666679084301, -0.0013888883404433727, 2.4799519451335073e-05, -2.7210165853830404e-07)
"""(cos r − 1 + ½ r²) / r⁴ as a polynomial in r² for |r| ≤ π/4, error 1e-13."""


def sin(x: Vec) -> Vec:
    """The sine; NaN for infinities."""
    return _of_quadrant(*_reduced(x), 0)


def cos(x: Vec) -> Vec:
    """The cosine; NaN for infinities."""
    return _of_quadrant(*_reduced(x), 1)


def _of_quadrant(r: Vec, quadrant: Vec, shift: int) -> Vec:
    """sin(r + (quadrant + shift)·π/2)."""
    square = r * r
    sine = (polynomial(square, _SINE) * square).times_plus(r, r)
    cosine = polynomial(square, _COSINE).times_plus(square, -0.5).times_plus(square, 1.0)
    turned = quadrant + shift
    odd = (turned & 1).compare("ne", 0)
    return (cosine.where(odd, sine).bits() ^ (turned & 2) << 30).floats()


def _reduced(x: Vec) -> tuple[Vec, Vec]:
    """Argument reduction: r and n of x = n·π/2 + r with |r| ≤ π/4. n is correct modulo 4."""
    f, bits = x.function, x.bits()
    k = (bits >> 23 & 0xFF) - 150
    k = k.where(k.compare("sgt", 0), 0)
    m = x * ((127 - k) << 23).floats()
    wide = m.cast("fpext", "f64")
    high, low = (
        f.gather(f.table(f"powers_{name}", numbers), k, "f64")
        for name, numbers in zip(("high", "low"), _tables(), strict=True)
    )
    angle = wide * high
    shifted = wide.times_plus(low, angle).times_plus(1 / _HALF_PI[0], _ROUNDING)
    n = _ROUNDING - shifted  # negated
    r = n.times_plus(_HALF_PI[1], n.times_plus(_HALF_PI[0], angle))
    r = wide.times_plus(low, r).cast("fptrunc", "f32")
    return r, shifted.bits().cast("trunc", "i32")


@cache
def _tables() -> tuple[list[int], list[int]]:
    """The bits of two f64 for each k, whose sum is 2^k modulo 2π. The first has 29 bits: its product by m is exact."""
    high: list[int] = []
    low: list[int] = []
    for k in range(_POWERS):
        rest = (1 << (256 + k)) % (2 * _PI)
        dropped = max(rest.bit_length() - 29, 0)
        first = rest >> dropped << dropped
        for table, number in ((high, first), (low, rest - first)):
            table.append(struct.unpack("<q", struct.pack("<d", number / (1 << 256)))[0])
    return high, low
