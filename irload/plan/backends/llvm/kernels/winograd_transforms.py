"""The transforms of Winograd's F(4,3): 6×6 inputs and 3×3 weights to 36 products, 36 sums to 4×4 outputs.

The interpolation points are 0, ±A, ±B and ∞. Rounding errors are a third of those with ±1 and ±2 for them, and all
constants of the transforms of data are exact in f32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Value

A, B = 5 / 8, 3 / 2
A2, B2 = A * A, B * B


def _weights_row(point: float, other: float) -> list[float]:
    """1, x and x² at a point, over the product of its distances to the other points."""
    scale = 2 * point**2 * (point**2 - other**2)
    return [1 / scale, point / scale, point**2 / scale]


WEIGHTS = np.array(
    [
        [1 / (A2 * B2), 0, 0],
        _weights_row(A, B),
        _weights_row(-A, B),
        _weights_row(B, A),
        _weights_row(-B, A),
        [0, 0, 1],
    ]
)
"""G of G·w·Gᵀ."""

TRANSFORMED = 1 << 13
"""Filters whose weights are transformed at once."""


def transform_weights(weights: Array) -> Array:
    """[36, O, C] of weights [O, C, 3, 3], calculated in f64."""
    channels, depth = weights.shape[:2]
    found = np.empty((36, channels, depth), np.float32)
    both = np.kron(WEIGHTS, WEIGHTS)
    count = max(1, TRANSFORMED // depth)
    for first in range(0, channels, count):
        part = weights[first : first + count].reshape(-1, 9).astype(np.float64)
        found[:, first : first + count] = (both @ part.T).reshape(36, -1, depth)
    return found


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
