"""Convolutions to few channels, such as the image that a super-resolution network returns, with vectors along the sum.

A contraction has one output channel per lane, so that one channel would use one lane of 16. Here the channels and
columns of a row of a window, which are contiguous in channels-last maps, fill the lanes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irload.core.size import is_size
from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY, column_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES, elements_of, is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.loops import digits, offset, repeat
from irload.plan.backends.llvm.kernels.windows import (
    WindowAxes,
    axis_key,
    clipped_taps,
    emit_taps,
    five,
    three_axes,
    whole_windows,
)
from irload.plan.backends.llvm.operands import load_lanes, read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import across, folded
from irload.plan.backends.llvm.tuning import FEW_OUTPUTS_SHARE, OUTPUT_SPAN, UNROLLED_RUN
from irload.plan.backends.llvm.weight_memory import aligned_copy
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class FewOutputs(Kernel):
    """y[n,o,…] = epilogue(Σ x · w[o], operands). Pointers: x, y, operands, w [outputs, planes, rows, run].

    A `run` is the columns and channels of a row of a window. `lanes` neighbouring windows are summed together; windows
    that begin or end outside a row, one by one. A unit is OUTPUT_SPAN windows of a row.

    The code reads the batch, the number of outputs, sizes and counts of the axes, and strides. Compiled in are the
    windows, `depth` (the channels of x), whether planes and rows have padding, and short strides of columns.
    """

    lanes: int
    batch: int
    outputs: int
    depth: int
    axes: WindowAxes
    strides: tuple[tuple[int, ...], ...]
    elements: tuple[str, ...]
    epilogue: Expression

    @property
    def code(self) -> FewOutputs:
        x, *others = self.strides
        strides = (ANY, 0, ANY, ANY, x[4]), *((ANY, ANY, ANY, ANY, column_key(s[4])) for s in others)
        depth, height = map(axis_key, self.axes[:2])
        width = replace(self.axes[2], size=0, count=1)
        return replace(self, batch=0, outputs=0, axes=(depth, height, width), strides=strides)

    @property
    def numbers(self) -> tuple[int, ...]:
        sizes = [n for axis in self.axes for n in (axis.size, axis.count)]
        return (self.outputs, self._parts, *sizes, *unknown(self.strides, self.code.strides))

    @property
    def count(self) -> int:
        return self.batch * self.axes[0].count * self.axes[1].count * self._parts

    @property
    def cycles(self) -> float:
        windows = self.batch * prod(axis.count for axis in self.axes)
        return windows * self.outputs * cycles_per_window(self.lanes, self._rows, self._run)

    @property
    def _parts(self) -> int:
        return -(-self.axes[2].count // OUTPUT_SPAN)

    @property
    def _run(self) -> int:
        return self.axes[2].kernel * self.depth

    @property
    def _rows(self) -> int:
        """The rows of all planes of a window."""
        return self.axes[0].kernel * self.axes[1].kernel

    @property
    def _row_bytes(self) -> int:
        """The bytes of the weights of a row: whole vectors."""
        return -(-self._run // self.lanes) * self.lanes * SIZES[F32]

    def write(self, function: Function) -> None:
        f, tensors = function, len(self.strides)
        arguments = Arguments(f)
        *pointers, weights = arguments.pointers(tensors + 1)
        outputs, parts = arguments.integers(2)
        sizes = [(arguments.integer(), arguments.integer()) for _ in self.axes]
        strides = arguments.filled(self.strides)
        for index in f.range(f["begin"], f["end"]):
            sample, (u, v, part) = digits(index, (sizes[0][1], sizes[1][1], parts))
            given: dict[str, AnyInt | Pointer] = {}
            for name, axis, at, size in zip(("plane", "row"), self.axes, (u, v), sizes, strict=False):
                given[name], given[f"{name}s"] = emit_taps(f, axis, at, size[0])
            tap = [at * axis.stride - axis.begin for axis, at in zip(self.axes, (u, v, 0), strict=True)]
            x = pointers[0] + offset(strides[0], (sample, 0, *tap))
            given["down"], given["across"] = (self.axes[k].dilation * strides[0][2 + k] for k in (0, 1))
            for o in f.range(0, outputs):
                given["weights"] = weights + o * (self._rows * self._row_bytes)
                others = [p + offset(s, (sample, o, u, v, 0)) for p, s in zip(pointers[1:], strides[1:], strict=True)]
                columns = [s[4] for s in strides[1:]]
                self._write_part(f, part, x, others, columns, given, *sizes[2])

    def _write_part(
        self,
        f: Function,
        part: AnyInt,
        x: Pointer,
        others: Sequence[Pointer],
        columns: Sequence[AnyInt],
        given: Mapping[str, AnyInt | Pointer],
        size: AnyInt,
        count: AnyInt,
    ) -> None:
        """Emit the windows of a unit. `others`: the result and the operands of window 0; `columns`: their strides."""
        width, pitch = self.axes[2], self.strides[0][4]
        first = part * OUTPUT_SPAN
        last = f.minimum(first + OUTPUT_SPAN, count)
        whole, end = whole_windows(f, width, size, count)
        inside = f.minimum(f.maximum(whole, first), last)
        stop = f.maximum(f.minimum(end, last), inside)
        runtime = {f"column{k}": c for k, c in enumerate(columns) if isinstance(c, Int)}

        def call(name: str, at: AnyInt, more: Mapping[str, AnyInt]) -> None:
            addresses = {f"tensor{k}": p + at * c for k, (p, c) in enumerate(zip(others, columns, strict=True))}
            source = {"x": x + at * (width.stride * pitch)}
            body = self._write_windows if name == "windows" else self._write_end
            f.call(name, {**source, **addresses, **runtime, **given, **more}, body)

        def ends(begin: AnyInt, end: AnyInt) -> None:
            for at in f.range(begin, end):
                tap, taps = clipped_taps(f, width, at, size)
                call("end", at, {"tap": tap, "taps": taps})

        ends(first, inside)
        with f.when(stop - inside >= self.lanes):
            for at in f.range(inside, stop, self.lanes):
                call("windows", f.minimum(at, stop - self.lanes), {})  # the last block may repeat windows
        with f.otherwise():
            ends(inside, stop)
        ends(stop, last)

    def _write_windows(self, f: Function) -> None:
        """Sum `lanes` neighbouring windows, of which no tap is outside the row."""
        sums = [f.zero()] * self.lanes
        pitch = self.axes[2].stride * self.strides[0][4]
        for source, weights in self._rows_of(f, sums):
            self._add(f, sums, [source + k * pitch for k in range(self.lanes)], weights, self._run)
        self._store(f, folded(f, sums, Vec.__add__), None)

    def _write_end(self, f: Function) -> None:
        """Sum the taps of one window that are inside the row."""
        sums = [f.zero()]
        for source, weights in self._rows_of(f, sums):
            for tap in f.range(f["tap"], f["taps"], 1, sums):
                start = source + tap * self.strides[0][4]
                self._add(f, sums, [start], weights + tap * (self.depth * SIZES[F32]), self.depth)
        self._store(f, across(f, sums[0], Vec.__add__), 1)

    def _rows_of(self, f: Function, sums: list[Vec]) -> Iterator[tuple[Pointer, Pointer]]:
        """Yield the first element and the weights of each row of a window."""
        depth, height, _ = self.axes
        planes = (f["plane"], f["planes"]) if depth.is_padded else (0, depth.kernel)
        rows = (f["row"], f["rows"]) if height.is_padded else (0, height.kernel)
        for plane in repeat(f, *planes, 1, sums):
            for row in repeat(f, *rows, 1, sums):
                source = f["x"] + plane * f["down"] + row * f["across"]
                yield source, f["weights"] + (plane * height.kernel + row) * self._row_bytes

    def _add(self, f: Function, sums: list[Vec], lines: Sequence[Pointer], weights: Pointer, length: int) -> None:
        """Add the products of `length` elements of each line and the weights."""
        element, lanes = self.elements[0], self.lanes
        whole, tail = divmod(length, lanes)

        def add(at: AnyInt, count: int | None) -> None:
            factor = f.load(weights, at * (lanes * SIZES[F32]), count)
            for k, line in enumerate(lines):
                part = load_lanes(f, line, at * (lanes * SIZES[element]), count, element)
                sums[k] = f.fma(part, factor, sums[k])

        for at in f.range(0, whole, 1, sums) if whole > UNROLLED_RUN else range(whole):
            add(at, None)
        if tail:
            add(whole, tail)

    def _store(self, f: Function, total: Vec, count: int | None) -> None:
        """Apply the epilogue to the sums of `count` neighbouring windows, and store the results."""
        columns = [s[4] if column_key(s[4]) != ANY else f[f"column{k}"] for k, s in enumerate(self.strides[1:])]
        elements = self.elements[1:]
        operands = [read(f, f[f"tensor{k}"], 0, column, count, elements[k]) for k, column in enumerate(columns) if k]
        write(f, evaluate(self.epilogue, [total, *operands])[0], f["tensor0"], 0, columns[0], count, elements[0])


def cycles_per_window(lanes: int, rows: int, run: int) -> float:
    """The cycles of one output of a window of `rows` runs."""
    return 0.55 * rows * -(-run // lanes) + 4


def fits_few_outputs(conv: ConvProblem, selector: Selector) -> bool:
    """True for wide channels-last maps of which a run fills more lanes than the output channels would."""
    if not conv.weights.is_constant:
        return False
    groups, outputs, depth, *kernel = conv.shape
    data, width, lanes = conv.data, conv.windows[-1], selector.target.lanes
    column = data.strides[-1]
    if groups > 1 or width.dilation != 1 or is_size(column) or column != depth * data.itemsize:
        return False
    is_short = not selector.resized and width.count - width.kernel < lanes
    if not is_contiguous(data, 1) or outputs >= lanes or is_short:
        return False
    rows, run = prod(kernel[:-1]), kernel[-1] * depth
    return outputs * cycles_per_window(lanes, rows, run) <= FEW_OUTPUTS_SHARE * rows * run / 2


def select_few_outputs(conv: ConvProblem, selector: Selector) -> Launch:
    """The kernel of a convolution that `fits_few_outputs`."""
    tensors, lanes = [conv.data, *conv.tensors], selector.target.lanes
    _, outputs, depth, *_ = conv.shape
    strides, axes = tuple(five(t.strides) for t in tensors), three_axes(conv.windows)
    kernel = FewOutputs(lanes, conv.out.shape[0], outputs, depth, axes, strides, elements_of(tensors), conv.epilogue)

    def pack(weights: Array) -> Array:
        runs = np.moveaxis(weights[0], 1, -1).reshape(outputs, -1, conv.shape[-1] * depth)
        return aligned_copy(np.pad(runs, ((0, 0), (0, 0), (0, -runs.shape[2] % lanes))))

    return selector.launch(kernel, [*tensors, conv.packed(selector, ("few outputs", lanes), pack)])
