"""Softmax along any axis: with vectors along the axis or across it, and a kernel for short contiguous rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import ANY, Axis, axes_of, by_memory
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.kernels.formulas import Formula, formula_kernel
from irload.plan.backends.llvm.kernels.loops import either, tail_key
from irload.plan.backends.llvm.kernels.positions import Positions
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import across, unzipped
from irload.plan.backends.llvm.tuning import SOFTMAX_VECTORS
from irload.plan.backends.llvm.vector_math import exp_or_zero, larger
from irload.plan.ir.softmax_threshold import least_exponent
from irload.plan.ir.steps import SoftmaxStep
from irload.record import record

CYCLES = 20
"""Cycles per vector of 8 lanes, of all passes."""


def select_softmax(step: SoftmaxStep, selector: Selector) -> list[Launch]:
    """A softmax along any axis."""
    x, out = selector.array(step.inputs[0]), selector.array(step.output)
    axes = axes_of(x.shape, out.strides, x.strides)
    row = axes.pop(step.axis)
    others, lanes = by_memory(axes), selector.target.lanes
    *outer, rows = others or [Axis(1, (0, 0))]
    kernel: Kernel = formula_kernel(lanes, others, [row], Softmax())
    if row.size <= lanes and row.strides[1] == 4 and rows.strides == (4, 4 * row.size):
        kernel = ShortSoftmax(tuple(outer), lanes, rows.size, tail_key(rows.size, lanes), row.size, row.strides[0])
    return [selector.launch(kernel, [out, x])]


@record()
class ShortSoftmax(LineKernel):
    """e^(x − max) / Σ of each row. A vector contains several rows. Pointers: to, from.

    Rows of `length` are contiguous in the input. Columns are contiguous in the output, with a stride of `apart` bytes,
    as for a softmax over few channels whose output is planar: road-segmentation-adas-0001 takes 8 % less time (Zen 3).
    In a vector, each row takes a power of 2 of lanes. The code reads the number of rows and `apart`; the length and
    `known`, the `tail_key` of the rows, are compiled in.
    """

    lanes: int
    rows: int
    known: int
    length: int
    apart: int

    @property
    def code(self) -> ShortSoftmax:
        return replace(self, outer=(), rows=ANY, apart=ANY)

    @property
    def cycles(self) -> float:
        return self.count * self._together * 3 * CYCLES

    @property
    def parts(self) -> int:
        """The number of blocks of `lanes` rows."""
        return -(-self.rows // self.lanes)

    @property
    def _together(self) -> int:
        """The lanes per row, which is also the number of vectors per block."""
        return 1 << (self.length - 1).bit_length()

    def write_part(self, f: Function, given: ShortSoftmax, starts: list[Pointer], part: AnyInt) -> None:
        first, last = part * self.lanes, self.known % self.lanes or self.lanes
        to, source = moved(starts, [first * stride for stride in (4, 4 * self.length)])
        whole = self.lanes if self.known >= self.lanes else last
        for rows in either(f, first + self.lanes > given.rows, last, whole):
            self._write_rows(f, to, source, given.apart, rows)

    def _write_rows(self, f: Function, to: Pointer, source: Pointer, apart: AnyInt, rows: int) -> None:
        per_vector = self.lanes // self._together
        counts = [self.length * min(max(rows - k * per_vector, 0), per_vector) for k in range(self._together)]
        offsets = [4 * self.length * per_vector * k for k in range(self._together)]
        results = [
            self._softmax(f, f.load(source, place, count)) if count else f.zero()
            for place, count in zip(offsets, counts, strict=True)
        ]
        for k, column in enumerate(unzipped(f, results)[: self.length]):
            f.store(column, to, apart * k, rows)

    def _softmax(self, f: Function, x: Vec) -> Vec:
        """The softmax of contiguous rows, each in separate lanes."""
        together = self._together
        if self.length < together:
            padding = [k % together >= self.length for k in range(self.lanes)]
            elements = [k // together * self.length + k % together for k in range(self.lanes)]
            lanes = [self.lanes if b else n for b, n in zip(padding, elements, strict=True)]
            x = f.shuffle(x, f.number(float("-inf")), lanes)
        top = across(f, x, larger, together)
        e = exp_or_zero(x - top, least_exponent(self.length))
        total = across(f, e, Vec.__add__, together)
        return e * (1.0 / total)


@record()
class Softmax(Formula):
    """e^(x − max) / Σ. The parameter is the exponent below which exponentials are 0."""

    name: ClassVar[str] = "Softmax"
    vectors: ClassVar[int] = SOFTMAX_VECTORS

    @property
    def elements(self) -> Sequence[str]:
        return F32, F32

    @property
    def cycles(self) -> float:
        return CYCLES

    def parameter(self, size: int) -> float:
        return least_exponent(size)

    def write(self, f: Function, positions: Positions, parameter: Vec) -> None:
        tops = [f.number(float("-inf"))]
        for vectors in positions.fold(tops, larger):
            tops[:] = [larger(x, top) for x, top in zip(vectors.read(1), tops, strict=True)]
        totals = [f.zero()]
        for vectors in positions.fold(totals, Vec.__add__):
            lowered = [x - top for x, top in zip(vectors.read(1), vectors.of(tops), strict=True)]
            exponentials = [exp_or_zero(x, parameter) for x in lowered]
            vectors.write(0, exponentials)
            totals[:] = [total + e for total, e in zip(totals, exponentials, strict=True)]
        scales = [1.0 / total for total in totals]
        for vectors in positions.walk():
            results = zip(vectors.read(0), vectors.of(scales), strict=True)
            vectors.write(0, [e * scale for e, scale in results])
