"""Transforms and packs the constant weights of 3×3 convolutions for Winograd's products, in one pass."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.elements import F16, F32, SIZES
from irload.plan.backends.llvm.kernel import Standalone
from irload.plan.backends.llvm.kernels.loops import lines_of, offset
from irload.plan.backends.llvm.kernels.weights import prepare
from irload.plan.backends.llvm.kernels.winograd_transforms import transform_weights
from irload.plan.backends.llvm.operands import load_lanes
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.weight_memory import aligned_f32
from irload.record import record


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

    def write(self, function: Function) -> None:
        f = function
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
