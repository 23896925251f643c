"""Normalization to mean 0 and variance 1 over trailing axes or over groups of channels, then an epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from irload.plan.backends.llvm.axes import Axis, axes_of, by_memory, size_of
from irload.plan.backends.llvm.builder import Function, Vec
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.formulas import ColumnFormula, Formula, formula_kernel
from irload.plan.backends.llvm.kernels.positions import Positions, Vectors
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.sized_arrays import spread
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tuning import FEW_GROUPED, NORMALIZED_COLUMNS
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import GroupNormalizeStep, NormalizeStep
from irload.record import record

_SCALE_AND_SHIFT = Expression(3, (Instruction("multiply", (0, 1)), Instruction("add", (3, 2))))


def select_normalize(step: NormalizeStep, selector: Selector) -> list[Launch]:
    """The kernel of a normalization over trailing axes."""
    x, out = selector.array(step.inputs[0]), selector.array(step.output)
    operands = [selector.array(v) for v in step.operands]
    axes = axes_of(out.shape, out.strides, x.strides, *(spread(a, out.shape).strides for a in operands))
    outer = by_memory([axis for k, axis in enumerate(axes) if k not in step.axes])
    inner = by_memory([axes[k] for k in step.axes])
    how = NormalizationFormula(step.eps, step.center, step.outside, step.epilogue)
    return [selector.launch(formula_kernel(selector.target.lanes, outer, inner, how), [out, x, *operands])]


def select_group_normalize(step: GroupNormalizeStep, selector: Selector) -> list[Launch]:
    """The kernel of a normalization over groups of channels. Scale and shift are its epilogue."""
    x, scale, bias = (selector.array(v) for v in step.inputs)
    out, lanes = selector.array(step.output), selector.target.lanes
    columns = [spread(a.reshape(-1, *(1,) * (x.ndim - 2)), x.shape).strides for a in (scale, bias)]
    batch, channels, *positions = axes_of(x.shape, out.strides, x.strides, *columns)
    each = channels.size // step.groups
    groups = Axis(step.groups, tuple(each * s for s in channels.strides))
    outer, inner = [batch, groups], [Axis(each, channels.strides), *positions]
    how = NormalizationFormula(step.eps, True, False, _SCALE_AND_SHIFT)
    kernel = formula_kernel(lanes, by_memory(outer), by_memory(inner), how)
    if channels.strides[1] == SIZES[F32] and 1 < each < FEW_GROUPED * lanes and size_of(positions) > 1:
        rest, inside = by_memory([batch]), tuple(by_memory(positions))
        kernel = ColumnFormula(lanes, (*rest, channels), inside, how, _band(each, step.groups), each)
    return [selector.launch(kernel, [out, x, scale, bias])]


def _band(each: int, groups: int) -> int:
    """Columns per band, in whole groups of `each`.

    They fill whole cache lines if a band of at most NORMALIZED_COLUMNS can; otherwise they take about one line.
    """
    line = LINE // SIZES[F32]
    bands = [each * n for n in range(1, groups + 1) if groups % n == 0]
    few = [band for band in bands if band <= max(NORMALIZED_COLUMNS, each)]
    return min(few, key=lambda band: (band % line != 0, band < line, band))


@record()
class NormalizationFormula(Formula):
    """(x − mean) / √(variance + eps), or x / √(mean of x² + eps) without `center`, then the epilogue.

    `outside`: eps is added to the root instead.
    """

    eps: float
    center: bool
    outside: bool
    epilogue: Expression

    name: ClassVar[str] = "Normalize"

    @property
    def elements(self) -> Sequence[str]:
        return [F32] * (1 + self.epilogue.operands)

    @property
    def cycles(self) -> float:
        return 6 + 2 * self.epilogue.operands + expression_cycles(self.epilogue)

    def write(self, f: Function, positions: Positions, parameter: Vec) -> None:
        def means(values: Callable[[Vectors], list[Vec]], term: Callable[[Vec, Vec], Vec]) -> list[Vec]:
            totals = [f.zero()]
            for vectors in positions.fold(totals, Vec.__add__):
                totals[:] = [term(x, total) for x, total in zip(values(vectors), totals, strict=True)]
            return [total / parameter for total in totals]

        centers = means(lambda vectors: vectors.read(1), lambda x, total: total + x) if self.center else None

        def centered(vectors: Vectors) -> list[Vec]:
            x = vectors.read(1)
            return x if centers is None else [a - b for a, b in zip(x, vectors.of(centers), strict=True)]

        factors = [
            1.0 / (v.unary("sqrt") + self.eps if self.outside else (v + self.eps).unary("sqrt"))
            for v in means(centered, lambda x, total: x.times_plus(x, total))
        ]
        for vectors in positions.walk():
            scaled = [x * factor for x, factor in zip(centered(vectors), vectors.of(factors), strict=True)]
            operands = [vectors.read(tensor) for tensor in range(2, len(self.elements))]
            vectors.write(
                0, [evaluate(self.epilogue, arguments)[0] for arguments in zip(scaled, *operands, strict=True)]
            )
