"""Quantizes rows of data to i8 in groups, for products with compressed integer weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import ANY, axes_of, merged
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.operands import load_lanes
from irload.plan.backends.llvm.shuffles import across
from irload.plan.backends.llvm.vector_math import ROUNDING
from irload.plan.memory.layout import FACTORS, RowCodes
from irload.record import record

LARGEST = 127
"""The code of the largest magnitude in a group."""
SMALLEST = 2.0**-100
"""Groups whose numbers are all smaller become 0, since the quotient 127 / largest would overflow."""
INTERLEAVED = (0, 2, 4, 6, 1, 3, 5, 7)


@record()
class QuantizeRows(LineKernel):
    """codes = round(x · 127 / max |x|) of each group. Pointers: from, to.

    The scale of a group with NaN or infinities is NaN or infinite. A unit is a group. `outer`: the axes of the rows,
    with strides in bytes in x and in the copy. Elements of a row are contiguous. The code reads all sizes but `group`,
    which is a multiple of the lanes.
    """

    lanes: int
    length: int
    codes: RowCodes
    element: str = F32

    prepares: ClassVar[bool] = True

    @staticmethod
    def of(
        lanes: int, shape: Sequence[int], strides: Sequence[int], codes: RowCodes, element: str = F32
    ) -> QuantizeRows:
        """The kernel for an array with these strides in bytes, whose last axis is contiguous."""
        *sizes, length = shape
        row = codes.row(length)
        to = [row * prod(sizes[k + 1 :]) for k in range(len(sizes))]
        rows = tuple(merged(axes_of(sizes, strides[:-1], to)))
        return QuantizeRows(rows, lanes, length, codes, element)

    @property
    def why(self) -> str:
        return f"compiled, quantizes data to i8 in groups of {self.codes.group}"

    @property
    def code(self) -> QuantizeRows:
        return replace(self, outer=(), length=ANY)

    @property
    def cycles(self) -> float:
        return self.count * (self.codes.group // self.lanes * 4 + 20)

    @property
    def parts(self) -> int:
        return self.length // self.codes.group

    def write_part(self, f: Function, given: QuantizeRows, starts: list[Pointer], part: AnyInt) -> None:
        group = self.codes.group
        vectors = range(0, group, self.lanes)
        order = [first + k for first in range(0, self.lanes, 8) for k in INTERLEAVED]
        source, to = moved(starts, [part * (group * SIZES[self.element]), part * group])
        factors = starts[1] + (given.length + part * FACTORS)
        values = [load_lanes(f, source, at * SIZES[self.element], None, self.element) for at in vectors]
        most = f.zero()
        for value in values:
            most = most.maximum(abs(value))
        most = across(f, most, Vec.maximum)
        factor = (LARGEST / most).where(most.compare("oge", SMALLEST), f.zero())
        total = f.zero("i32")
        for at, value in zip(vectors, values, strict=True):
            code = (value * factor + ROUNDING).bits()
            total = total + ((code << 24) >> 24)
            narrow = code.cast("trunc", "i8")
            f.store(f.shuffle(narrow, narrow, order) if self.codes.interleaved else narrow, to, at)
        scale = most * (1 / LARGEST)
        f.store_scalar(scale.lane(0), factors)
        f.store_scalar((across(f, total, Vec.__add__).converted() * scale).lane(0), factors, SIZES[F32])
