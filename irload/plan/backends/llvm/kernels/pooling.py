"""Poolings of maps with vectors over channels."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.llvm.builder import AnyInt, Function, Vec
from irload.plan.backends.llvm.elements import elements_of, is_contiguous
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.sliding_windows import SlidingWindows, share_of, tile_of
from irload.plan.backends.llvm.kernels.windows import edges, five, three_axes
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import WIDEST
from irload.plan.ir.steps import PoolStep
from irload.record import record

LOWEST = float(np.finfo(np.float32).min)
"""The maximum of no elements. NaN never wins, as in the NumPy back end."""

LONG = 16
"""Taps along a row from which rows are summed separately, so that large means lose no accuracy."""


def select_pool(step: PoolStep, selector: Selector) -> list[Launch]:
    """The kernel of a pooling."""
    x, out, target = selector.stored(step.inputs[0]), selector.stored(step.output), selector.target
    axes, (batch, channels) = three_axes(step.windows), x.shape[:2]
    is_dense = is_contiguous(x, 1) and is_contiguous(out, 1)
    unrolled = is_dense and max(axes[2].kernel, edges(axes[2])) <= WIDEST
    vectors, columns = tile_of(target, channels, axes[2], unrolled=unrolled) if is_dense else (1, 1)
    pooling = Pooling(
        target.lanes,
        batch,
        channels,
        axes,
        (five(x.strides), five(out.strides)),
        elements_of((x, out)),
        share_of(target, selector.threads, channels, batch * axes[0].count * axes[1].count, vectors),
        vectors,
        columns,
        unrolled,
        step.kind,
        full=step.divisor == "full",
    )
    return [selector.launch(pooling, [x, out])]


@record()
class Pooling(SlidingWindows):
    """Maxima or means (`kind`). Pointers: x, y. `full`: divisors count the padding, too."""

    kind: str
    full: bool

    @property
    def sums_rows(self) -> bool:
        return self.kind == "mean" and self.axes[2].kernel >= LONG

    def neutral(self, f: Function) -> Vec:
        return f.zero() if self.kind == "mean" else f.number(LOWEST)

    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        return total + element if self.kind == "mean" else f.select(element.compare("ogt", total), element, total)

    def result(self, f: Function, values: list[Vec], elements: AnyInt) -> Vec:
        if self.kind == "max":
            return values[0]
        divisor = self.taps if self.full else f.maximum(elements, 1)
        if isinstance(divisor, int):
            return values[0] * (1 / divisor)
        return values[0] * f.splat(1.0 / divisor.cast("sitofp", "f32"))
