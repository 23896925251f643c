"""Depthwise convolutions: vectors over channels, several columns of the output at once, padding skipped.

The rows of a window that lie in the data are a loop. Along the columns the taps are written out: those of the windows
at both ends of a row for themselves, as they lack some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import elements_of, is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import accumulate, offset
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.kernels.windows import WindowAxis, five, in_blocks, readers
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.pack import aligned_f32
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import Expression
from irload.record import record

WIDEST = 32
"""Taps along a row, and windows at the end of one, up to which they are written out."""

WIDE = 5
"""Taps along a row from which one vector of channels at a time is faster (Zen 3)."""

FEW_ROWS = 16
"""Rows below which threads also share the channels."""


@record()
class Depthwise(Kernel):
    """y[n,c,…] = epilogue(Σ x[n,c,…] · w[tap,c], operands) of maps [N,C,D,H,W]. Pointers: x, w, y, then the operands.

    A unit is a row of `share` channels. `vectors` × `columns` sums are computed together. Strides count bytes.
    """

    lanes: int
    batch: int
    channels: int
    axes: tuple[WindowAxis, WindowAxis, WindowAxis]
    x: tuple[int, ...]
    y: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    epilogue: Expression
    vectors: int
    columns: int
    share: int
    elements: tuple[str, ...]
    """How x, y and the operands are stored."""

    @property
    def _shares(self) -> int:
        return -(-self.channels // self.share)

    @property
    def code(self) -> Depthwise:
        return replace(self, batch=0)

    @property
    def count(self) -> int:
        return self.batch * self.axes[0].count * self.axes[1].count * self._shares

    @property
    def cycles(self) -> float:
        sums = self.batch * prod(a.count for a in self.axes) * -(-self.channels // self.lanes)
        return sums * (2 + prod(a.kernel for a in self.axes) / 2)

    @property
    def pitch(self) -> int:
        """The bytes of the weights of one tap."""
        return -(-self.channels // self.lanes) * self.lanes * 4

    def write(self, function: Function) -> None:
        f = function
        x, w, y, *operands = (f.load_pointer(f["arguments"], 8 * k) for k in range(3 + len(self.operands)))
        depth, height, width = self.axes

        def unit(index: Value, _: list[Value]) -> None:
            row, share = f.divmod(index, self._shares)
            plane, v = f.divmod(row, height.count)
            sample, u = f.divmod(plane, depth.count)
            planes, rows = depth.emit_taps(f, u), height.emit_taps(f, v)
            data = f.at(x, offset(f, self.x, (sample, 0, planes[2], rows[2], -width.begin)))
            results = [
                f.at(pointer, offset(f, strides[:4], (sample, 0, u, v)))
                for pointer, strides in zip((y, *operands), (self.y, *self.operands), strict=True)
            ]
            first = f.multiply(share, self.share)
            bounds = [*planes[:2], *rows[:2], first, f.minimum(f.add(first, self.share), self.channels)]
            self._write_row(f, data, w, results, bounds)

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_row(self, f: Function, x: Value, w: Value, results: list[Value], bounds: list[Int]) -> None:
        """All columns of a row: the first ones, blocks of windows that lack no tap, the last ones."""
        width = self.axes[2]

        def block(at: Int, taps: list[range]) -> None:
            strides = (self.y, *self.operands)
            places = [f.at(p, f.multiply(at, s[4])) for p, s in zip(results, strides, strict=True)]
            name = _Block(self, taps).function(f)
            f.call(name, [f.at(x, f.multiply(at, width.stride * self.x[4])), w, *places, *bounds])

        in_blocks(f, width, self.columns, block)


class _Block:
    """Writes neighbouring windows of these taps along the columns, for a range of the channels."""

    def __init__(self, kernel: Depthwise, taps: Sequence[range]) -> None:
        self._kernel = kernel
        self._taps = taps

    def function(self, caller: Function) -> str:
        """The name of the function, written when it is first needed."""
        name = "block" + "".join(f"_{own.start}_{own.stop}" for own in self._taps)
        if not caller.module.has(name):
            results = ["ptr y", *(f"ptr operand{k}" for k in range(len(self._kernel.operands)))]
            bounds = ["plane", "planes", "row", "rows", "channel", "channels"]
            self._write(caller.module.function(name, ["ptr x", "ptr w", *results, *(f"i64 {b}" for b in bounds)]))
        return name

    def _write(self, f: Function) -> None:
        kernel = self._kernel
        strides = (kernel.y, *kernel.operands)
        results = [f["y"], *(f[f"operand{k}"] for k in range(len(kernel.operands)))]

        def channels(channel: Int, count: int) -> None:
            places = [f.at(p, f.multiply(channel, s[1])) for p, s in zip(results, strides, strict=True)]
            data, weights = f.at(f["x"], f.multiply(channel, kernel.x[1])), f.at(f["w"], f.multiply(channel, 4))
            self._store(f, self._sums(f, data, weights, count), places, count)

        step = kernel.vectors * kernel.lanes
        whole, rest = kernel.channels // step * step, kernel.channels % step
        if whole:
            f.loop(f["channel"], f.minimum(f["channels"], whole), step, lambda at, _: channels(at, step))
        if rest:
            f.when(f.compare("eq", f["channels"], kernel.channels), lambda: channels(whole, rest))

    def _sums(self, f: Function, x: Value, w: Value, count: int) -> list[Value]:
        """Vector by vector of each window. Data is read once for all windows that it belongs to."""
        kernel = self._kernel
        depth, height, width = kernel.axes
        vectors = -(-count // kernel.lanes)
        belongs = readers(width, self._taps)

        rows = height.whole or (f["row"], f["rows"])

        def in_row(data: Value, weights: Value, sums: list[Value]) -> list[Value]:
            factors: dict[tuple[int, int], Value] = {}
            for column in sorted(belongs):
                for v in range(vectors):
                    place = column * kernel.x[4] + v * kernel.lanes * kernel.x[1]
                    lanes = min(count - v * kernel.lanes, kernel.lanes)
                    element = read(f, data, place, kernel.x[1], lanes, kernel.elements[0])
                    for window, tap in belongs[column]:
                        if (tap, v) not in factors:
                            factors[tap, v] = f.load(
                                weights, tap * kernel.pitch + v * f.target.bytes, align=f.target.bytes
                            )
                        at = window * vectors + v
                        sums[at] = f.fma(element, factors[tap, v], sums[at])
            return sums

        def in_plane(plane: Int, sums: list[Value]) -> list[Value]:
            data = f.at(x, f.multiply(plane, depth.dilation * kernel.x[2]))
            weights = f.at(w, f.multiply(plane, height.kernel * width.kernel * kernel.pitch))
            return accumulate(
                f,
                rows,
                lambda row, sums: in_row(
                    f.at(data, f.multiply(row, height.dilation * kernel.x[3])),
                    f.at(weights, f.multiply(row, width.kernel * kernel.pitch)),
                    list(sums),
                ),
                sums,
            )

        planes = depth.whole or (f["plane"], f["planes"])
        return accumulate(f, planes, in_plane, [f.zero()] * (len(self._taps) * vectors))

    def _store(self, f: Function, sums: list[Value], places: list[Value], count: int) -> None:
        """The epilogue. Operands that are the same for all windows are read once."""
        kernel, windows = self._kernel, len(self._taps)
        vectors = len(sums) // windows
        same: dict[tuple[int, int], Value] = {}
        for window in range(windows):
            for v in range(vectors):
                lanes = min(count - v * kernel.lanes, kernel.lanes)
                values = [sums[window * vectors + v]]
                for k, strides in enumerate(kernel.operands):
                    place = window * strides[4] + v * kernel.lanes * strides[1]
                    if (k, place) not in same:
                        same[k, place] = read(f, places[1 + k], place, strides[1], lanes, kernel.elements[2 + k])
                    values.append(same[k, place])
                (result,) = evaluate(f, kernel.epilogue, values)
                place = window * kernel.y[4] + v * kernel.lanes * kernel.y[1]
                write(f, result, places[0], place, kernel.y[1], lanes, kernel.elements[1])


def fits_depthwise(conv: Windowed) -> bool:
    """True for one channel a group on maps with the channels innermost, and windows that are not too wide."""
    return is_contiguous(conv.data, 1) and is_depthwise(conv.shape, conv.axes()[2])


def is_depthwise(weights: Sequence[int], width: WindowAxis) -> bool:
    """True for weights of one channel a group, and windows along rows that are not too wide."""
    edges = width.count - len(width.interior)
    return tuple(weights[1:3]) == (1, 1) and max(width.kernel, edges) <= WIDEST


def select_depthwise(conv: Windowed, selector: Selector) -> Launch:
    """The kernel of a convolution that fits."""
    data, out = conv.data, conv.out
    axes, lanes = conv.axes(), selector.target.lanes
    vectors, columns = _tile(selector.target, data.shape[1], axes[2])
    units = data.shape[0] * axes[0].count * axes[1].count
    share = data.shape[1]
    if selector.threads > 1 and units < FEW_ROWS:
        share = max(-(-share // (4 * vectors * lanes)), 1) * vectors * lanes
    kernel = Depthwise(
        lanes,
        data.shape[0],
        data.shape[1],
        axes,
        five(data.strides),
        five(out.strides),
        tuple(five(np.broadcast_to(a, out.shape).strides) for a in conv.operands),
        conv.epilogue,
        vectors,
        columns,
        share,
        elements_of([data, out, *conv.operands]),
    )

    def pack(weights: Array) -> Array:
        channels, taps = weights.shape[0], prod(weights.shape[3:])
        packed = aligned_f32((taps, -(-channels // lanes) * lanes))
        packed[:, :channels] = weights.reshape(channels, taps).T
        packed[:, channels:] = 0
        return packed

    packed = conv.packed(selector, ("depthwise", lanes), pack)
    return selector.launch(kernel, [data, packed, out, *conv.operands])


def _tile(target: Target, channels: int, width: WindowAxis) -> tuple[int, int]:
    """Vectors of channels and columns, whose sums take half of the registers.

    Vectors are those of a line of the cache, but one where the weights of a row would take too many registers.
    """
    line = 16 // target.lanes if width.kernel < WIDE else 1
    vectors = min(line, -(-channels // target.lanes))
    return vectors, min(target.registers // (2 * vectors), width.count)
