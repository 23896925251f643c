"""The transforms of Winograd's F(4,3): 6×6 inputs and 3×3 weights to 36 products, 36 sums to 4×4 outputs.

The interpolation points are 0, ±A, ±B and ∞. Rounding errors are a third of the errors with ±1 and ±2, and all
constants of the transforms of data are exact in f32. A kernel transforms and packs constant weights in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.elements import F16, F32, SIZES
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.kernels.loops import lines_of, offset
from irload.plan.backends.llvm.kernels.weights import prepare
from irload.plan.backends.llvm.operands import load_lanes
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.weight_memory import aligned_f32
from irload.record import record

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


@record()
class WinogradWeights(Standalone):
    """Filters [channels, depth, 3, 3] → 36 matrices in panels [panels, depth, panel·lanes]. A unit is a panel.

    Pointers: the filters, of type `source`, and the panels. Numbers: vectors per panel, channels, depth (at least
    `lanes`), bytes of a matrix.
    """

    lanes: int
    source: str

    @property
    def scratch(self) -> int:
        return (9 * self.lanes + 36) * self.lanes * 4

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        (source, target), (vectors, channels, depth, pitch) = arguments.pointers(2), arguments.integers(4)
        size, nbytes = SIZES[self.source], self.lanes * 4
        stride, width = depth * (9 * size), vectors * nbytes
        transformed = f["scratch"] + 9 * self.lanes * nbytes
        for index in f.range(f["begin"] * vectors, f["end"] * vectors):
            p, v = divmod(index, vectors)
            panel = target + (p * width * depth + v * nbytes)
            rows = lines_of(f, source, stride, index * self.lanes, channels)
            for at in f.range(0, depth, self.lanes):
                start = f.minimum(at, depth - self.lanes)  # the last block may overlap the previous one
                for k in f.range(0, 9):
                    begin = start * (9 * size) + k * (self.lanes * size)
                    squares = [load_lanes(f, row, begin, None, self.source) for row in rows]
                    for n, column in enumerate(transposed(f, squares)):
                        f.store(column, f["scratch"], k * (self.lanes * nbytes) + n * nbytes)
                for k in f.range(0, self.lanes):
                    taps = [f.load(f["scratch"], k * (9 * nbytes) + t * nbytes) for t in range(9)]
                    place = panel + offset((width, width), (start, k))
                    for n, value in enumerate(_transformed(taps)):
                        f.store(value, transformed, n * nbytes)
                    for n in f.range(0, 36):  # LLVM takes 50 ms longer for 36 addresses that depend on the pitch
                        f.store(f.load(transformed, n * nbytes), place, n * pitch)


def _transformed(taps: list[Vec]) -> list[Vec]:
    """G·w·Gᵀ: 9 vectors of f32 to 36, computed in f64."""
    exact = [tap.cast("fpext", "f64") for tap in taps]
    columns = [transform_weights(exact[k::3]) for k in range(3)]
    matrices = [value for row in zip(*columns, strict=True) for value in transform_weights(row)]
    return [value.cast("fptrunc", F32) for value in matrices]


def winograd_weights(weights: Array, target: Target, panel: int, threads: int) -> Array:
    """Pack weights [channels, depth, 3, 3] of f16 or f32 as [36, panels, depth, panel·lanes]."""
    weights = np.ascontiguousarray(weights)
    channels, depth = weights.shape[:2]
    width = panel * target.lanes
    count = -(-channels // width)
    packed = aligned_f32((36, count, depth, width))
    kernel = WinogradWeights(target.lanes, F16 if weights.dtype == np.float16 else F32)
    prepare(kernel, [weights, packed, panel, channels, depth, packed.strides[0]], target, threads, count)
    return packed
