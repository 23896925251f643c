"""Sine and cosine of any f32. Errors are relative to the result, as in vector_math.py: 1.2e-7.

An argument is m·2^k with m below 2²⁴; 2^k is looked up modulo 2π, in two f64, so that nothing is lost of large ones.
"""

from __future__ import annotations

import struct
from functools import cache

from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.vectors import Bits, Vector, polynomial

_PI = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D0082EFA98EC4E6C89
"""π · 2²⁵⁶."""
_POWERS = 106
"""How many k there are: f32 up to infinity."""
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_ROUNDING = 6755399441055744.0
"""1.5 · 2⁵²: a f64 added to it is rounded to a whole one, which its lowest bits then hold."""
_SINE = (-0.16666655242443085, 0.008332177996635437, -0.00019517235341481864)
"""(sin r − r) / r³ in r² for |r| ≤ π/4: 4e-9."""
_COSINE = (0.0416666679084301, -0.0013888883404433727, 2.4799519451335073e-05, -2.7210165853830404e-07)
"""(cos r − 1 + ½ r²) / r⁴ in r² for |r| ≤ π/4: 1e-13."""


def sin(x: Vector) -> Vector:
    """The sine; NaN of infinities."""
    return _of_quadrant(*_reduced(x), 0)


def cos(x: Vector) -> Vector:
    """The cosine; NaN of infinities."""
    return _of_quadrant(*_reduced(x), 1)


def _of_quadrant(r: Vector, quadrant: Bits, shift: int) -> Vector:
    """sin(r + (quadrant + shift)·π/2)."""
    f, square = r.function, r * r
    sine = (polynomial(square, _SINE) * square).times_plus(r, r)
    cosine = polynomial(square, _COSINE).times_plus(square, -0.5).times_plus(square, 1.0)
    turned = quadrant + shift
    odd = f.value(f.booleans, f"icmp ne {f.integers} {(turned & 1).value}, zeroinitializer")
    found = cosine.where(odd, sine).bits().value
    sign = ((turned & 2) << 30).value
    return Bits(f, f.value(f.integers, f"xor {f.integers} {found}, {sign}")).floats()


def _reduced(x: Vector) -> tuple[Vector, Bits]:
    """The r and n of x = n·π/2 + r with |r| ≤ π/4; n modulo 4 or more."""
    f, bits = x.function, x.bits()
    k = (bits >> 23 & 0xFF) - 150
    positive = f.value(f.booleans, f"icmp sgt {f.integers} {k.value}, zeroinitializer")
    k = Bits(f, f.select(positive, k.value, Value("zeroinitializer", f.integers)))
    one = Bits(f, Value("splat (i32 127)", f.integers))
    m = (x * ((one - k) << 23).floats()).value
    doubles, longs = f"<{f.lanes} x double>", f"<{f.lanes} x i64>"

    def fma(a: Value, b: str | Value, c: Value) -> Value:
        arguments = f"{doubles} {a}, {doubles} {b}, {doubles} {c}"
        return f.value(doubles, f"call {doubles} @llvm.fma.v{f.lanes}f64({arguments})")

    wide = f.value(doubles, f"fpext {f.vector} {m} to {doubles}")
    high, low = (_looked_up(f, name, numbers, k) for name, numbers in zip(("high", "low"), _tables(), strict=True))
    angle = f.value(doubles, f"fmul {doubles} {wide}, {high}")
    rounding = Value(f"splat (double {_ROUNDING!r})", doubles)
    shifted = fma(fma(wide, low, angle), f"splat (double {_hexadecimal(1 / _HALF_PI[0])})", rounding)
    n = f.value(doubles, f"fsub {doubles} {rounding}, {shifted}")  # negated
    r = fma(n, f"splat (double {_hexadecimal(_HALF_PI[0])})", angle)
    r = fma(n, f"splat (double {_hexadecimal(_HALF_PI[1])})", r)
    r = f.value(f.vector, f"fptrunc {doubles} {fma(wide, low, r)} to {f.vector}")
    whole = f.value(longs, f"bitcast {doubles} {shifted} to {longs}")
    return Vector(f, r), Bits(f, f.value(f.integers, f"trunc {longs} {whole} to {f.integers}"))


def _looked_up(f: Function, name: str, numbers: list[int], k: Bits) -> Value:
    """For each lane the entry of a table of f64."""
    doubles, pointers = f"<{f.lanes} x double>", f"<{f.lanes} x ptr>"
    table = f.module.table(f"powers_{name}", numbers)
    places = f.value(pointers, f"getelementptr double, ptr {table}, {f.integers} {k.value}")
    every = f"{f.booleans} splat (i1 true)"
    name = f"@llvm.masked.gather.v{f.lanes}f64.v{f.lanes}p0"
    return f.value(doubles, f"call {doubles} {name}({pointers} {places}, i32 8, {every}, {doubles} poison)")


@cache
def _tables() -> tuple[list[int], list[int]]:
    """The bits of two f64 for each k, whose sum is 2^k modulo 2π; the first has 29 bits, so that its multiples fit."""
    high: list[int] = []
    low: list[int] = []
    for k in range(_POWERS):
        rest = (1 << (256 + k)) % (2 * _PI)
        dropped = max(rest.bit_length() - 29, 0)
        first = rest >> dropped << dropped
        for table, number in ((high, first), (low, rest - first)):
            table.append(struct.unpack("<q", struct.pack("<d", number / (1 << 256)))[0])
    return high, low


def _hexadecimal(number: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
