"""The transforms of Winograd's F(4,3): 6×6 inputs and 3×3 weights to 36 products, 36 sums to 4×4 outputs.

The interpolation points are 0, ±A, ±B and ∞. Rounding errors are a third of those with ±1 and ±2 for them, and all
constants of the transforms of data are exact in f32.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from irload.plan.backends.llvm.builder import Function, Value

A, B = 5 / 8, 3 / 2
A2, B2 = A * A, B * B


def _weights_row(point: float, other: float) -> tuple[float, float, float]:
    """1, x and x² at a point, over the product of its distances to the other points."""
    scale = 2 * point**2 * (point**2 - other**2)
    return 1 / scale, point / scale, point**2 / scale


def transform_weights(f: Function, w: Sequence[Value]) -> list[Value]:
    """G·w: 6 of 3 vectors of f64. Applied to all columns, then to all rows, it gives G·w·Gᵀ."""
    found = [_scaled(f, w[0], 1 / (A2 * B2))]
    for one, x, square in (_weights_row(A, B), _weights_row(B, A)):
        even = f.arithmetic("fadd", _scaled(f, w[0], one), _scaled(f, w[2], square))
        odd = _scaled(f, w[1], x)
        found += [f.arithmetic("fadd", even, odd), f.arithmetic("fsub", even, odd)]
    return [*found, w[2]]


def _scaled(f: Function, value: Value, number: float) -> Value:
    bits = struct.unpack("<Q", struct.pack("<d", number))[0]
    return f.arithmetic("fmul", value, Value(f"splat (double 0x{bits:016X})", value.type))


def transform_inputs(f: Function, d: Sequence[Value]) -> list[Value]:
    """Bᵀ·d: 6 of 6 vectors. Applied to all columns, then to all rows, it gives Bᵀ·d·B."""
    a, b = f.fma(d[2], f.number(-B2), d[4]), f.fma(d[1], f.number(-B2), d[3])
    c, e = f.fma(d[2], f.number(-A2), d[4]), f.fma(d[1], f.number(-A2), d[3])
    product, total = f.number(A2 * B2), f.number(-(A2 + B2))
    return [
        f.fma(d[0], product, f.fma(d[2], total, d[4])),
        f.fma(b, f.number(A), a),
        f.fma(b, f.number(-A), a),
        f.fma(e, f.number(B), c),
        f.fma(e, f.number(-B), c),
        f.fma(d[1], product, f.fma(d[3], total, d[5])),
    ]


def transform_outputs(f: Function, m: Sequence[Value]) -> list[Value]:
    """Aᵀ·m: 4 of 6 vectors, likewise."""
    a, b = f.arithmetic("fadd", m[1], m[2]), f.arithmetic("fsub", m[1], m[2])
    c, e = f.arithmetic("fadd", m[3], m[4]), f.arithmetic("fsub", m[3], m[4])
    return [
        f.arithmetic("fadd", f.arithmetic("fadd", m[0], a), c),
        f.fma(e, f.number(B), f.arithmetic("fmul", b, f.number(A))),
        f.fma(c, f.number(B2), f.arithmetic("fmul", a, f.number(A2))),
        f.fma(e, f.number(B * B2), f.fma(b, f.number(A * A2), m[5])),
    ]
