"""CumSum: each element is the sum of all elements before it along an axis."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from irload.plan.backends.llvm.arguments import moved
from irload.plan.backends.llvm.axes import ANY, Axis, axes_of, merged, size_of
from irload.plan.backends.llvm.builder import AnyInt
from irload.plan.backends.llvm.elements import SIZES, element_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, Row
from irload.plan.backends.llvm.operands import load_lanes, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import LINES_BLOCK
from irload.plan.ir.steps import CumulativeSumStep
from irload.record import record


def select_cumulative_sum(step: CumulativeSumStep, selector: Selector) -> list[Launch]:
    """The kernel of a CumSum. If neighbouring lines are contiguous, each lane of a vector is a line."""
    arrays = x, y = selector.array(step.inputs[0]), selector.array(step.output)
    element = element_of(x)
    lines = axes_of(x.shape, x.strides, y.strides)
    along = lines.pop(step.axis)
    lines = merged(lines) or [Axis(1, (0, 0))]
    lanes = selector.target.lanes if lines[-1].strides == (SIZES[element],) * 2 else 1
    kernel = CumulativeSum(lanes, tuple(lines), along, element, step.exclusive, step.reverse)
    return [selector.launch(kernel, arrays)]


@record()
class CumulativeSum(BlockKernel):
    """y[i] = x[0] + … + x[i] along each line; without x[i] if `exclusive`, from the end if `reverse`. Pointers: x, y.

    The rows are of lines, one per lane. Strides in bytes, of x and y: `axes` between lines, `along` between elements.
    """

    along: Axis
    element: str
    exclusive: bool
    reverse: bool

    block: ClassVar[int] = LINES_BLOCK

    @property
    def code(self) -> CumulativeSum:
        return replace(self, axes=(self.row,), along=Axis(ANY, (ANY, ANY)))

    @property
    def row(self) -> Axis:
        return Axis(ANY, (ANY, ANY) if self.lanes == 1 else (SIZES[self.element],) * 2)

    @property
    def has_tail(self) -> bool:
        return self.lanes > 1

    @property
    def cycles(self) -> float:
        return size_of(self.axes) / self.lanes * self.along.size * 4  # the latency of an addition

    def write_vector(self, row: Row, given: CumulativeSum, vector: AnyInt, count: AnyInt | None) -> None:
        """Sum along the lines of a vector."""
        f, size, pointers = row.f, given.along.size, row.at(vector * self.lanes)
        is_scalar, element = self.lanes == 1, self.element
        total = [f.zero(element, self.lanes)]
        for number in f.range(0, size, 1, total):
            at = size - 1 - number if self.reverse else number
            x, y = moved(pointers, [at * step for step in given.along.strides])
            before = total[0]
            total[0] = before + (f.load_scalar(x, 0, element) if is_scalar else load_lanes(f, x, 0, count, element))
            result = before if self.exclusive else total[0]
            if is_scalar:
                f.store_scalar(result, y)
            else:
                write(f, result, y, 0, SIZES[element], count, element)
