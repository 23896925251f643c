"""Max and average pooling, with vectors over channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from irload.plan.backends.llvm.builder import AnyInt, Function, Vec
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.sliding_windows import SlidingWindows, WindowFormula
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import PoolStep
from irload.record import record

LOWEST = float(np.finfo(np.float32).min)
"""The maximum of an empty window. NaN is ignored, as in the NumPy back end."""

LONG = 16
"""Minimum taps per row for which each row is summed separately, so that means of large windows are accurate."""


def select_pool(step: PoolStep, selector: Selector) -> list[Launch]:
    """The kernel of a pooling."""
    tensors = [selector.stored(step.inputs[0]), selector.stored(step.output)]
    how = PoolingFormula(step.kind, full=step.divisor == "full")
    return [selector.launch(SlidingWindows.of(how, step.windows, tensors, selector), tensors)]


@record()
class PoolingFormula(WindowFormula):
    """Maxima or means (`kind`). `full`: divisors include the padding."""

    kind: str
    full: bool

    name: ClassVar[str] = "Pooling"

    def sums_rows(self, taps: int) -> bool:
        return self.kind == "mean" and taps >= LONG

    def neutral(self, f: Function) -> Vec:
        return f.zero() if self.kind == "mean" else f.number(LOWEST)

    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        return total + element if self.kind == "mean" else f.select(element.compare("ogt", total), element, total)

    def result(self, f: Function, values: list[Vec], elements: Callable[[], AnyInt], taps: int) -> Vec:
        if self.kind == "max":
            return values[0]
        divisor = taps if self.full else f.maximum(elements(), 1)
        if isinstance(divisor, int):
            return values[0] * (1 / divisor)
        return values[0] * f.splat(1.0 / divisor.cast("sitofp", "f32"))
