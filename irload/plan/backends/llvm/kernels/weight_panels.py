"""Constant weights into the panels of products: compiled, in one pass over f16 or f32, for any shape."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.half import widened
from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Standalone, address
from irload.plan.backends.llvm.kernels.immediate import prepare
from irload.plan.backends.llvm.operands import read_halves
from irload.plan.backends.llvm.pack import aligned_f32, panels
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.target import Target
from irload.record import record

SMALL = 1 << 14
"""Elements up to which NumPy packs as fast."""


@record()
class WeightPanels(Standalone):
    """Rows [channels, length] → panels [panels, length, panel·lanes], filled up with zeros. A unit is a panel.

    Arguments: the rows, the panels, for each element of a row the bytes of its place in a panel, a row of zeros; then
    the channels, the length, which is no less than `lanes`, and the bytes between rows. `half`: rows are f16.
    """

    lanes: int
    panel: int
    half: bool

    def write(self, function: Function) -> None:
        f = function
        source, target, places, zeros = (f.load_pointer(f["arguments"], 8 * k) for k in range(4))
        channels, length, stride = (f.load_int(f["arguments"], 8 * k) for k in range(4, 7))
        width = self.panel * self.lanes
        size = 2 if self.half else 4

        def vector(index: Value, _: list[Value]) -> None:
            p, v = f.divmod(index, self.panel)
            place = f.at(target, f.add(f.multiply(f.multiply(p, width * 4), length), f.multiply(v, self.lanes * 4)))
            rows = [
                row_of(f, f.add(f.multiply(index, self.lanes), k), source, zeros, channels, stride)
                for k in range(self.lanes)
            ]

            def square(at: Value, _: list[Value]) -> None:
                first = f.minimum(at, f.subtract(length, self.lanes))  # the last square may overlap the one before
                own = [load_row(f, row, f.multiply(first, size), half=self.half) for row in rows]
                for k, column in enumerate(transposed(f, own)):
                    f.store(column, place, f.load_int(places, f.multiply(f.add(first, k), 8)))

            f.loop(0, length, self.lanes, square)

        f.loop(f.multiply(f["begin"], self.panel), f.multiply(f["end"], self.panel), 1, vector)


def row_of(f: Function, channel: Int, source: Value, zeros: Value, channels: Value, stride: Int) -> Value:
    """The row of a channel, `stride` bytes behind that of the one before; zeros for those beyond the last."""
    inside = f.compare("slt", channel, channels)
    return f.value("ptr", f"select i1 {inside}, ptr {f.at(source, f.multiply(channel, stride))}, ptr {zeros}")


def load_row(f: Function, row: Value, offset: Int, *, half: bool) -> Value:
    """A vector of f32 from f32, or from f16."""
    return read_halves(f, row, offset, f.lanes) if half else f.load(row, offset)


def weight_panels(weights: Array, target: Target, panel: int, threads: int) -> Array:
    """`panels` of weights [G, channels, sum…] in f16 or f32, whose sums are taken in the order of their axes."""
    groups, channels, *sums = weights.shape
    length = prod(sums)
    order = sorted(range(len(sums)), key=lambda k: -abs(weights.strides[2 + k]))
    rows = weights.transpose(0, 1, *(2 + k for k in order)).reshape(groups, channels, length)
    if weights.size <= SMALL or length < target.lanes or rows.strides[2] != rows.itemsize:
        columns = weights.reshape(groups, channels, length).swapaxes(1, 2)
        columns = widened(columns) if columns.dtype == np.float16 else columns
        return panels(columns.swapaxes(1, 2), target.lanes, panel)
    width = panel * target.lanes
    count = -(-channels // width)
    packed = aligned_f32((groups, count, length, width))
    places = np.arange(0, length * width * 4, width * 4, dtype=np.int64).reshape(sums).transpose(order).ravel()
    zeros = np.zeros(length, rows.dtype)
    kernel = WeightPanels(target.lanes, panel, rows.itemsize == 2)
    for g in range(groups):
        pointers = [address(rows[g]), address(packed[g]), address(places), address(zeros)]
        prepare(kernel, target, [*pointers, channels, length, rows.strides[1]], count, threads)
    return packed
