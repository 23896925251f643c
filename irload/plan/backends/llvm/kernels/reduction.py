"""Reductions over any axes: sum, mean, maximum, minimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irload.plan.backends.llvm.axes import Axis, by_memory
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.elements import INTEGERS, SIZES, element_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.formulas import Formula, formula_kernel
from irload.plan.backends.llvm.kernels.positions import Positions
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import REDUCED_BLOCK
from irload.plan.ir.steps import ReduceStep
from irload.record import record

LARGEST = 3.4028234663852886e38


def select_reduce(step: ReduceStep, selector: Selector) -> list[Launch]:
    """The kernel of a reduction over any axes."""
    x, out = selector.stored(step.inputs[0]), selector.array(step.output)
    outer_axes = [k for k in range(x.ndim) if k not in step.axes]
    strides = out.strides if len(outer_axes) == out.ndim else tuple(out.strides[k] for k in outer_axes)
    outer = by_memory([Axis(x.shape[k], (s, x.strides[k])) for k, s in zip(outer_axes, strides, strict=True)])
    inner = by_memory([Axis(x.shape[k], (x.strides[k],)) for k in step.axes])
    inner = [Axis(axis.size, (0, *axis.strides)) for axis in inner]
    how = ReductionFormula(step.kind, element_of(out), element_of(x))
    return [selector.launch(formula_kernel(selector.target.lanes, outer, inner, how), [out, x])]


@record()
class ReductionFormula(Formula):
    """A sum, mean, maximum or minimum (`kind`) of x. Maxima and minima ignore NaN.

    `result` and `element`: the stored types of the result and of x; i32 and i64 are reduced as such, others as f32.
    """

    kind: str
    result: str
    element: str

    name: ClassVar[str] = "Reduce"
    block: ClassVar[int] = REDUCED_BLOCK

    @property
    def elements(self) -> Sequence[str]:
        return self.result, self.element

    @property
    def cycles(self) -> float:
        return 4 / 3

    def write(self, f: Function, positions: Positions, parameter: Vec) -> None:
        totals = [self._neutral(f)]
        for vectors in positions.fold(totals, self._combine):
            values = vectors.read(1, self.element)
            totals[:] = [self._combine(total, value) for total, value in zip(totals, values, strict=True)]
        positions.store([total / parameter for total in totals] if self.kind == "mean" else totals, self.result)

    def _neutral(self, f: Function) -> Vec:
        """The result of no elements."""
        if self.element in INTEGERS:
            greatest = (1 << (8 * SIZES[self.element] - 1)) - 1
            return f.zero(self.element).constant({"max": -greatest - 1, "min": greatest}.get(self.kind, 0))
        # for a maximum, the result is the lowest finite f32 if all are NaN or −∞
        return f.number({"max": -LARGEST, "min": float("inf")}.get(self.kind, 0.0))

    def _combine(self, total: Vec, value: Vec) -> Vec:
        """The total with one more value."""
        if self.kind in ("sum", "mean"):
            return total + value
        order = ("ogt", "olt") if value.is_float else ("sgt", "slt")
        return value.where(value.compare(order[self.kind == "min"], total), total)
