"""CumSum: each element is the sum of all elements before it along an axis."""

from __future__ import annotations

from dataclasses import replace

from irload.plan.backends.llvm.arguments import Arguments, moved, unknown, walk_lines
from irload.plan.backends.llvm.axes import ANY, Axis, axes_of, merged, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES, element_of
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import either
from irload.plan.backends.llvm.operands import load_lanes, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import CumulativeSumStep
from irload.record import record


def select_cumulative_sum(step: CumulativeSumStep, selector: Selector) -> list[Launch]:
    """The kernel of a CumSum. If the lines are contiguous across, each lane of a vector is a line."""
    arrays = x, y = selector.array(step.inputs[0]), selector.array(step.output)
    element = element_of(x)
    lines = axes_of(x.shape, x.strides, y.strides)
    along = lines.pop(step.axis)
    lines = merged(lines)
    across = lines.pop() if lines and lines[-1].strides == (SIZES[element],) * 2 else Axis(1, (0, 0))
    lanes = selector.target.lanes if across.size > 1 else 1
    kernel = CumulativeSum(lanes, tuple(lines), across, along, element, step.exclusive, step.reverse)
    return [selector.launch(kernel, arrays)]


@record()
class CumulativeSum(Kernel):
    """y[i] = x[0] + … + x[i] along each line; without x[i] if `exclusive`, from the end if `reverse`. Pointers: x, y.

    A unit is a vector of `lanes` contiguous lines, or one line. Strides in bytes, of x and y: `outer` between lines,
    `along` between elements. The code reads all sizes and strides.
    """

    lanes: int
    outer: tuple[Axis, ...]
    across: Axis
    along: Axis
    element: str
    exclusive: bool
    reverse: bool

    @property
    def code(self) -> CumulativeSum:
        return replace(self, outer=(), across=Axis(ANY, (0, 0)), along=Axis(ANY, (ANY, ANY)))

    @property
    def numbers(self) -> tuple[int, ...]:
        code = self.code
        return (
            *unknown((self.across.size, self.along), (code.across.size, code.along)),
            self._vectors,
            *table(self.outer, 2),
        )

    @property
    def count(self) -> int:
        return size_of(self.outer) * self._vectors

    @property
    def cycles(self) -> float:
        return self.count * self.along.size * 4  # the latency of an addition

    @property
    def _vectors(self) -> int:
        """The vectors of lines per position of `outer`."""
        return -(-self.across.size // self.lanes)

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        pointers, size = given.pointers(2), given.integer()
        along, vectors, outer = given.filled(self.code.along), given.integer(), given.table(2)
        step = self.lanes * SIZES[self.element]
        for starts, vector in walk_lines(f, vectors, outer, pointers):
            rest = size - vector * self.lanes
            for count in either(f, rest < self.lanes, rest, None) if self.lanes > 1 else (None,):
                total = [f.zero(self.element, self.lanes)]
                for number in f.range(0, along.size, 1, total):
                    at = along.size - 1 - number if self.reverse else number
                    x, y = moved(starts, [vector * step + at * s for s in along.strides])
                    before = total[0]
                    total[0] = before + self._load(f, x, count)
                    self._store(f, before if self.exclusive else total[0], y, count)

    def _load(self, f: Function, x: Pointer, count: AnyInt | None) -> Vec:
        if self.lanes == 1:
            return f.load_scalar(x, 0, self.element)
        return load_lanes(f, x, 0, count, self.element)

    def _store(self, f: Function, value: Vec, y: Pointer, count: AnyInt | None) -> None:
        if self.lanes == 1:
            f.store_scalar(value, y)
        else:
            write(f, value, y, 0, SIZES[self.element], count, self.element)
