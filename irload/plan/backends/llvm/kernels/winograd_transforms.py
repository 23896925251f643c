"""The transforms of Winograd's F(4,3): 6×6 inputs and 3×3 weights to 36 products, 36 sums to 4×4 outputs.

The interpolation points are 0, ±A, ±B and ∞. Rounding errors are a third of the errors with ±1 and ±2, and all
constants of the transforms of data are exact in f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm.builder import Vec

A, B = 5 / 8, 3 / 2
A2, B2 = A * A, B * B


def _weights_row(point: float, other: float) -> tuple[float, float, float]:
    """1, x and x² at a point, over the product of its distances to the other points."""
    scale = 2 * point**2 * (point**2 - other**2)
    return 1 / scale, point / scale, point**2 / scale


def transform_weights(w: Sequence[Vec]) -> list[Vec]:
    """G·w: 3 vectors of f64 to 6. Applied to all columns, then to all rows, it computes G·w·Gᵀ."""
    transformed = [w[0] * (1 / (A2 * B2))]
    for one, x, square in (_weights_row(A, B), _weights_row(B, A)):
        even, odd = w[0] * one + w[2] * square, w[1] * x
        transformed += [even + odd, even - odd]
    return [*transformed, w[2]]


def transform_inputs(d: Sequence[Vec]) -> list[Vec]:
    """Bᵀ·d: 6 vectors to 6. Applied to all columns, then to all rows, it computes Bᵀ·d·B."""
    a, b = d[2].times_plus(-B2, d[4]), d[1].times_plus(-B2, d[3])
    c, e = d[2].times_plus(-A2, d[4]), d[1].times_plus(-A2, d[3])
    product, total = A2 * B2, -(A2 + B2)
    return [
        d[0].times_plus(product, d[2].times_plus(total, d[4])),
        b.times_plus(A, a),
        b.times_plus(-A, a),
        e.times_plus(B, c),
        e.times_plus(-B, c),
        d[1].times_plus(product, d[3].times_plus(total, d[5])),
    ]


def transform_outputs(m: Sequence[Vec]) -> list[Vec]:
    """Aᵀ·m: 6 vectors to 4. Applied to all columns, then to all rows, it computes Aᵀ·m·A."""
    a, b, c, e = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
    return [
        m[0] + a + c,
        e.times_plus(B, b * A),
        c.times_plus(B2, a * A2),
        e.times_plus(B * B2, b.times_plus(A * A2, m[5])),
    ]
