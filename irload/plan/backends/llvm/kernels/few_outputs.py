"""Convolutions to few channels, such as the image that a super-resolution network returns, with vectors along the sum.

A contraction has one output channel per lane, so that one channel would use one lane of 16. Here the channels and
columns of a row of a window, which are contiguous in channels-last maps, fill the lanes instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irload.core.size import is_size
from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import ANY, Axis, strides_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES, elements_of, is_contiguous
from irload.plan.backends.llvm.expressions import evaluate
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.kernels.windows import (
    WindowKernel,
    WindowRow,
    clipped_taps,
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
class FewOutputs(WindowKernel):
    """y[n,o,…] = epilogue(Σ x · w[o], operands). The table is w [outputs, planes, rows, run].

    A `run` is the columns and channels of a row of a window. `lanes` neighbouring windows are summed together; windows
    that begin or end outside a row, one by one. A unit is OUTPUT_SPAN windows of a row. The code also reads the number
    of outputs; `depth`, the channels of x, is compiled in.
    """

    outputs: int
    depth: int
    epilogue: Expression

    @property
    def code(self) -> FewOutputs:
        x, *others = self.strides
        columns = strides_key(Axis(ANY, tuple(s[4] for s in others)), [SIZES[e] for e in self.elements[1:]])
        strides = (ANY, x[1], ANY, ANY, x[4]), *((ANY, ANY, ANY, ANY, column) for column in columns)
        return replace(self, batch=0, axes=self.axes_key, strides=strides, outputs=ANY)

    @property
    def parts(self) -> int:
        return -(-self.axes[2].count // OUTPUT_SPAN)

    @property
    def cycles(self) -> float:
        return self.windows * self.outputs * cycles_per_window(self.lanes, self._rows, self._run)

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

    def write_row(self, f: Function, given: FewOutputs, row: WindowRow) -> None:
        x, *results = row.tensors
        for o in f.range(0, given.outputs):
            tensors = [x, *(p + o * s[1] for p, s in zip(results, given.strides[1:], strict=True))]
            table = row.arguments["table"] + o * (self._rows * self._row_bytes)
            self._write_output(f, given, replace(row, tensors=tensors, arguments={**row.arguments, "table": table}))

    def _write_output(self, f: Function, given: FewOutputs, row: WindowRow) -> None:
        """Emit the windows of a unit for one output channel."""
        width, first = self.axes[2], row.part * OUTPUT_SPAN
        last = f.minimum(first + OUTPUT_SPAN, row.count)
        whole, end = whole_windows(f, width, row.size, row.count)
        inside = f.minimum(f.maximum(whole, first), last)
        stop = f.maximum(f.minimum(end, last), inside)

        def ends(begin: AnyInt, end: AnyInt) -> None:
            for at in f.range(begin, end):
                tap, taps = clipped_taps(f, width, at, row.size)
                f.call("end", {**given.arguments_at(row, at), "tap": tap, "taps": taps}, self._write_end)

        ends(first, inside)
        with f.when(stop - inside >= self.lanes):
            for at in f.range(inside, stop, self.lanes):
                begin = f.minimum(at, stop - self.lanes)  # the last block may repeat windows
                f.call("windows", given.arguments_at(row, begin), self._write_windows)
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
        planes, rows = self.bounds(f)
        for plane in repeat(f, *planes, 1, sums):
            for row in repeat(f, *rows, 1, sums):
                source = f["tensor0"] + plane * f["down"] + row * f["across"]
                yield source, f["table"] + (plane * self.axes[1].kernel + row) * self._row_bytes

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
        tensors = [(f[f"tensor{k}"], 0, self.column(f, k), count, e) for k, e in enumerate(self.elements)]
        operands = [read(f, *tensor) for tensor in tensors[2:]]
        write(f, evaluate(self.epilogue, [total, *operands])[0], *tensors[1])


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
    maps = conv.out.shape[0], axes, strides, elements_of(tensors)
    kernel = FewOutputs(lanes, *maps, outputs, depth, conv.epilogue)

    def pack(weights: Array) -> Array:
        runs = np.moveaxis(weights[0], 1, -1).reshape(outputs, -1, conv.shape[-1] * depth)
        return aligned_copy(np.pad(runs, ((0, 0), (0, 0), (0, -runs.shape[2] % lanes))))

    return selector.launch(kernel, [*tensors, conv.packed(selector, ("few outputs", lanes), pack)])
