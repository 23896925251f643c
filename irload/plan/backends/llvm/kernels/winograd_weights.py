"""Constant weights of 3×3 convolutions into the panels of Winograd's products: transformed and packed in one pass."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.kernel import Standalone, address
from irload.plan.backends.llvm.kernels.immediate import prepare
from irload.plan.backends.llvm.kernels.loops import offset
from irload.plan.backends.llvm.kernels.weight_panels import load_row, row_of
from irload.plan.backends.llvm.kernels.winograd_transforms import transform_weights
from irload.plan.backends.llvm.pack import aligned_f32
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import Target
from irload.record import record


@record()
class WinogradWeights(Standalone):
    """Filters [channels, depth, 3, 3] → 36 matrices in panels [panels, depth, panel·lanes]. A unit is a panel.

    Arguments: the filters, the panels, a row of zeros as long as the filters of one channel; then the channels, the
    depth, which is no less than `lanes`, and the bytes of a matrix. `half`: filters are f16.
    """

    lanes: int
    panel: int
    half: bool

    @property
    def scratch(self) -> int:
        return 9 * self.lanes * self.lanes * 4

    def write(self, function: Function) -> None:
        f = function
        source, target, zeros = (f.load_pointer(f["arguments"], 8 * k) for k in range(3))
        channels, depth, pitch = (f.load_int(f["arguments"], 8 * k) for k in range(3, 6))
        size, width, nbytes = 2 if self.half else 4, self.panel * self.lanes * 4, self.lanes * 4
        stride = f.multiply(depth, 9 * size)

        def vector(index: Value, _: list[Value]) -> None:
            p, v = f.divmod(index, self.panel)
            panel = f.at(target, f.add(f.multiply(f.multiply(p, width), depth), f.multiply(v, nbytes)))
            first = f.multiply(index, self.lanes)
            rows = [row_of(f, f.add(first, k), source, zeros, channels, stride) for k in range(self.lanes)]

            def block(at: Value, _: list[Value]) -> None:
                start = f.minimum(at, f.subtract(depth, self.lanes))  # the last block may overlap the one before

                def square(k: Value, _: list[Value]) -> None:
                    begin = f.add(f.multiply(start, 9 * size), f.multiply(k, self.lanes * size))
                    own = [load_row(f, row, begin, half=self.half) for row in rows]
                    for n, column in enumerate(transposed(f, own)):
                        f.store(column, f["scratch"], f.add(f.multiply(k, self.lanes * nbytes), n * nbytes))

                def filters(k: Value, _: list[Value]) -> None:
                    taps = [f.load(f["scratch"], f.add(f.multiply(k, 9 * nbytes), t * nbytes)) for t in range(9)]
                    place = f.at(panel, offset(f, (width, width), (start, k)))
                    for n, value in enumerate(_transformed(f, taps)):
                        f.store(value, place, f.multiply(pitch, n))

                f.loop(0, 9, 1, square)
                f.loop(0, self.lanes, 1, filters)

            f.loop(0, depth, self.lanes, block)

        f.loop(f.multiply(f["begin"], self.panel), f.multiply(f["end"], self.panel), 1, vector)


def _transformed(f: Function, taps: list[Value]) -> list[Value]:
    """G·w·Gᵀ of 9 vectors of f32 as 36, calculated in f64."""
    wide = f"<{f.lanes} x double>"
    exact = [f.value(wide, f"fpext {f.vector} {tap} to {wide}") for tap in taps]
    columns = [transform_weights(f, exact[k::3]) for k in range(3)]
    found = [value for row in zip(*columns, strict=True) for value in transform_weights(f, row)]
    return [f.value(f.vector, f"fptrunc {wide} {value} to {f.vector}") for value in found]


def winograd_weights(weights: Array, target: Target, panel: int, threads: int) -> Array:
    """[36, panels, depth, panel·lanes] of weights [channels, depth, 3, 3] in f16 or f32, of `lanes` depth at least."""
    weights = np.ascontiguousarray(weights)
    channels, depth = weights.shape[:2]
    width = panel * target.lanes
    count = -(-channels // width)
    packed = aligned_f32((36, count, depth, width))
    zeros = np.zeros(9 * depth, weights.dtype)
    kernel = WinogradWeights(target.lanes, panel, weights.itemsize == 2)
    pointers = [address(weights), address(packed), address(zeros)]
    prepare(kernel, target, [*pointers, channels, depth, packed.strides[0]], count, threads)
    return packed
