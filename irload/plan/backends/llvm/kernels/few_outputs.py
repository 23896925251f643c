"""Convolutions with few output channels: vectors over the input's channels, whose lanes are summed up at the end.

Other kernels have a lane for each output channel, most of which would be idle here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import F32, element_of, elements_of, is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import accumulate, offset
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.kernels.windows import WindowAxis, five, in_blocks, readers
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.pack import aligned_f32
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import folded
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.expression import Expression
from irload.record import record

WIDEST = 16
"""Taps along a row, and windows at the ends of one, up to which they are written out."""

SUMMING = 5
"""Cycles in which the lanes of one sum are added up, as one of a vector of them."""

BROADCAST = 0.7
"""Cycles of an FMA in the kernel that has a lane for each output channel."""


@record()
class FewOutputs(Kernel):
    """y[n,o,…] = epilogue(Σ x[n,c,…] · w[tap,c,o], operands) of maps [N,C,D,H,W]. Pointers: x, w, y, then the operands.

    A unit is a row of windows. `columns` windows are summed up together, and their lanes once there are as many windows
    as lanes. Weights: [tap, vector of channels, output, lane]. Strides count bytes.
    """

    lanes: int
    batch: int
    channels: int
    outputs: int
    axes: tuple[WindowAxis, WindowAxis, WindowAxis]
    x: tuple[int, ...]
    y: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    epilogue: Expression
    columns: int
    elements: tuple[str, ...]
    """How y and the operands are stored."""

    @property
    def code(self) -> FewOutputs:
        return replace(self, batch=0)

    @property
    def count(self) -> int:
        return self.batch * self.axes[0].count * self.axes[1].count

    @property
    def cycles(self) -> float:
        windows = self.batch * prod(axis.count for axis in self.axes)
        taps = prod(axis.kernel for axis in self.axes)
        return windows * _window_cycles(self.lanes, self.channels, self.outputs, taps, self.columns)

    @property
    def scratch(self) -> int:
        return self.outputs * self.lanes * self.lanes * 4

    @property
    def vectors(self) -> int:
        """Vectors of the input's channels."""
        return -(-self.channels // self.lanes)

    @property
    def pitch(self) -> int:
        """The bytes of the weights of one tap."""
        return self.vectors * self.outputs * self.lanes * 4

    def write(self, function: Function) -> None:
        f = function
        x, w, y, *operands = (f.load_pointer(f["arguments"], 8 * k) for k in range(3 + len(self.operands)))
        depth, height, width = self.axes

        def unit(index: Value, _: list[Value]) -> None:
            plane, v = f.divmod(index, height.count)
            sample, u = f.divmod(plane, depth.count)
            planes, rows = depth.emit_taps(f, u), height.emit_taps(f, v)
            data = f.at(x, offset(f, self.x, (sample, 0, planes[2], rows[2], -width.begin)))
            results = [
                f.at(pointer, offset(f, strides[:4], (sample, 0, u, v)))
                for pointer, strides in zip((y, *operands), (self.y, *self.operands), strict=True)
            ]
            self._write_row(f, data, w, results, [*planes[:2], *rows[:2]])

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_row(self, f: Function, x: Value, w: Value, results: list[Value], bounds: list[Int]) -> None:
        """All windows of a row, as many at once as there are lanes: first ones, those that lack no tap, last ones."""
        width, lanes = self.axes[2], self.lanes

        def tile(at: Int, taps: list[range]) -> None:
            for k in range(0, len(taps), self.columns):
                own = taps[k : k + self.columns]
                data = f.at(x, f.multiply(f.add(at, k), width.stride * self.x[4]))
                f.call(self._sums(f, own), [data, w, f.at(f["scratch"], k * lanes * 4), *bounds])
            places = [
                f.at(p, f.multiply(at, strides[4]))
                for p, strides in zip(results, (self.y, *self.operands), strict=True)
            ]
            f.call(self._results(f, len(taps)), [f["scratch"], *places])

        in_blocks(f, width, lanes, tile)

    def _sums(self, caller: Function, taps: Sequence[range]) -> str:
        """The function that sums up neighbouring windows of these taps, lane by lane, into scratch."""
        name = "sums" + "".join(f"_{own.start}_{own.stop}" for own in taps)
        if not caller.module.has(name):
            bounds = [f"i64 {bound}" for bound in ("plane", "planes", "row", "rows")]
            f = caller.module.function(name, ["ptr x", "ptr w", "ptr sums", *bounds])
            for k, value in enumerate(self._windows(f, taps)):
                window, output = divmod(k, self.outputs)
                f.store(value, f["sums"], (output * self.lanes + window) * self.lanes * 4)
        return name

    def _windows(self, f: Function, taps: Sequence[range]) -> list[Value]:
        """Output by output of each window. Data is read once for all windows that it belongs to."""
        depth, height, width = self.axes
        belongs = readers(width, taps)

        def vector(data: Value, weights: Value, count: int | None, sums: list[Value]) -> list[Value]:
            found, factors = list(sums), dict[tuple[int, int], Value]()
            for column in sorted(belongs):
                element = f.load(data, column * self.x[4], count)
                for window, tap in belongs[column]:
                    for output in range(self.outputs):
                        if (tap, output) not in factors:
                            place = tap * self.pitch + output * f.target.bytes
                            factors[tap, output] = f.load(weights, place, align=f.target.bytes)
                        at = window * self.outputs + output
                        found[at] = f.fma(element, factors[tap, output], found[at])
            return found

        whole, rest = divmod(self.channels, self.lanes)
        each = self.outputs * f.target.bytes

        def in_row(data: Value, weights: Value, sums: list[Value]) -> list[Value]:
            def step(v: Int, sums: list[Value]) -> list[Value]:
                return vector(f.at(data, f.multiply(v, f.target.bytes)), f.at(weights, f.multiply(v, each)), None, sums)

            if whole:
                sums = accumulate(f, (0, whole), step, sums)
            if rest:
                sums = vector(f.at(data, whole * f.target.bytes), f.at(weights, whole * each), rest, sums)
            return sums

        def in_plane(plane: Int, sums: list[Value]) -> list[Value]:
            data = f.at(f["x"], f.multiply(plane, depth.dilation * self.x[2]))
            weights = f.at(f["w"], f.multiply(plane, height.kernel * width.kernel * self.pitch))
            return accumulate(
                f,
                height.whole or (f["row"], f["rows"]),
                lambda row, sums: in_row(
                    f.at(data, f.multiply(row, height.dilation * self.x[3])),
                    f.at(weights, f.multiply(row, width.kernel * self.pitch)),
                    sums,
                ),
                sums,
            )

        zeros = [f.zero()] * (len(taps) * self.outputs)
        return accumulate(f, depth.whole or (f["plane"], f["planes"]), in_plane, zeros)

    def _results(self, caller: Function, count: int) -> str:
        """The function that makes results of the sums of `count` windows: a vector of windows for each output."""
        name = f"results_{count}"
        if not caller.module.has(name):
            tensors = [f"ptr operand{k}" for k in range(len(self.operands))]
            f = caller.module.function(name, ["ptr sums", "ptr y", *tensors])
            for output in range(self.outputs):
                self._finish(f, output, count)
        return name

    def _finish(self, f: Function, output: int, count: int) -> None:
        sums = [
            f.load(f["sums"], (output * self.lanes + min(k, count - 1)) * self.lanes * 4) for k in range(self.lanes)
        ]
        values = [folded(f, sums, lambda a, b: f.arithmetic("fadd", a, b))]
        for k, strides in enumerate(self.operands):
            place = output * strides[1]
            values.append(read(f, f[f"operand{k}"], place, strides[4], count, self.elements[1 + k]))
        (result,) = evaluate(f, self.epilogue, values)
        write(f, result, f["y"], output * self.y[1], self.y[4], count, self.elements[0])


def fits_few_outputs(conv: Windowed, target: Target) -> bool:
    """True for few output channels on maps with the channels innermost, and windows that are not too wide."""
    groups, outputs, channels, *kernel = conv.shape
    width = conv.axes()[2]
    if groups > 1 or outputs >= target.lanes or element_of(conv.data) != F32 or not is_contiguous(conv.data, 1):
        return False
    if max(width.kernel, width.count - len(width.interior)) > WIDEST:
        return False
    taps = prod(kernel)
    cycles = _window_cycles(target.lanes, channels, outputs, taps, _columns(target, outputs))
    return cycles < BROADCAST * taps * channels


def select_few_outputs(conv: Windowed, selector: Selector) -> Launch:
    """The kernel of a convolution that fits."""
    data, out, lanes = conv.data, conv.out, selector.target.lanes
    _, outputs, channels, *_ = conv.shape
    kernel = FewOutputs(
        lanes,
        data.shape[0],
        channels,
        outputs,
        conv.axes(),
        five(data.strides),
        five(out.strides),
        tuple(five(np.broadcast_to(a, out.shape).strides) for a in conv.operands),
        conv.epilogue,
        _columns(selector.target, outputs),
        elements_of([out, *conv.operands]),
    )

    def pack(weights: Array) -> Array:
        taps = prod(weights.shape[3:])
        packed = aligned_f32((taps, kernel.vectors, outputs, lanes))
        padded = np.zeros((outputs, kernel.vectors * lanes, taps), np.float32)
        padded[:, :channels] = weights.reshape(outputs, channels, taps)
        packed[...] = padded.reshape(outputs, kernel.vectors, lanes, taps).transpose(3, 1, 0, 2)
        return packed

    packed = conv.packed(selector, ("few outputs", lanes), pack)
    return selector.launch(kernel, [data, packed, out, *conv.operands])


def _columns(target: Target, outputs: int) -> int:
    """Windows whose sums take three quarters of the registers; a power of two."""
    most = max(1, 3 * target.registers // 4 // outputs)
    return min(target.lanes, 1 << (most.bit_length() - 1))


def _window_cycles(lanes: int, channels: int, outputs: int, taps: int, columns: int) -> float:
    """Cycles of one window: two FMAs or two loads in each, then the lanes are summed up."""
    each = max(outputs, 1 + outputs / columns) / 2
    return taps * -(-channels // lanes) * each + SUMMING * outputs
