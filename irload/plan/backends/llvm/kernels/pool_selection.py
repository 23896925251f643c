"""Which kernel runs a pooling: the one with vectors over channels, or the one with vectors along columns."""

from __future__ import annotations

from irload.plan.backends.llvm.elements import F32, element_of, is_contiguous
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.planar_pooling import LONGEST, PlanarPooling
from irload.plan.backends.llvm.kernels.pooling import Pooling
from irload.plan.backends.llvm.kernels.windows import five, pool_axes
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.ir.steps import Pool


def select_pool(step: Pool, selector: Selector) -> list[Launch]:
    """The kernel of a pooling, by their estimates where both can run it."""
    x, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    axes, lanes, full = pool_axes(step), selector.target.lanes, step.divisor == "full"
    batch, channels = x.shape[:2]
    what = (lanes, step.kind, full, batch, channels, axes, five(x.strides), five(out.strides))
    block, columns = _tile(selector.target, channels, axes[2].count)
    if not (is_contiguous(x, 1) and is_contiguous(out, 1)):
        block = columns = 1
    elements = element_of(x), element_of(out)
    pooling = Pooling(*what, block, columns, elements)
    if elements == (F32, F32) and is_contiguous(x, -1):
        planar = PlanarPooling(*what)
        if planar.scratch <= LONGEST and planar.cycles < pooling.cycles:
            return [selector.launch(planar, [x, out, *([planar.taps()] if planar.counts_taps else [])])]
    return [selector.launch(pooling, [x, out])]


def _tile(target: Target, channels: int, columns: int) -> tuple[int, int]:
    """Vectors of channels, and columns, whose totals take half of the registers."""
    vectors, totals = -(-channels // target.lanes), target.registers // 2
    block = min(vectors, totals if columns == 1 else totals // 2)
    block = -(-vectors // -(-vectors // block))
    return block, max(1, min(totals // block, columns))
