"""Normalisation of rows: each span of some axes to mean 0 and variance 1, then an epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, by_memory, offsets, unbounded
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.column_normalization import ColumnNormalize, factor
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.shuffles import across
from irload.plan.backends.llvm.spans import Span, moved
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import GroupNormalize, Normalize
from irload.record import record

FEW = 4
"""Vectors of the channels of a group, below which groups are normalised side by side."""
_SCALE_AND_SHIFT = Expression(3, (Instruction("multiply", (0, 1)), Instruction("add", (3, 2))))


def select_normalize(step: Normalize, selector: Selector) -> list[Launch]:
    """A normalisation over trailing axes."""
    x, out = selector.array(step.inputs[0]), selector.array(step.output)
    operands = [selector.array(v) for v in step.operands]
    axes = _axes([out, x, *(np.broadcast_to(a, out.shape) for a in operands)])
    outer = by_memory([axis for k, axis in enumerate(axes) if k not in step.axes])
    inner = by_memory([axes[k] for k in step.axes])
    how = (step.eps, step.center, step.outside, step.epilogue)
    kernel = _kernel(selector.target.lanes, outer, inner, *how)
    return [selector.launch(kernel, [out, x, *operands])]


def _kernel(
    lanes: int, outer: list[Axis], inner: list[Axis], eps: float, center: bool, outside: bool, epilogue: Expression
) -> Kernel:
    """The kernel whose vectors lie along the axis on which x is contiguous."""
    inner = inner or [Axis(1, (4,) * (1 + epilogue.operands))]
    nearest = min(abs(axis.strides[1]) for axis in inner)
    columns = next((axis for axis in outer if 0 < abs(axis.strides[1]) < nearest), None)
    if columns is None:
        return RowNormalize(lanes, tuple(outer), tuple(inner), eps, center, outside, epilogue)
    rest = tuple(axis for axis in outer if axis is not columns)
    return ColumnNormalize(lanes, rest, columns, 1, tuple(inner), eps, center, outside, epilogue)


def select_group_normalize(step: GroupNormalize, selector: Selector) -> list[Launch]:
    """A normalisation over groups of channels, whose scale and shift are an epilogue."""
    x, scale, bias = (selector.array(v) for v in step.inputs)
    out, lanes = selector.array(step.output), selector.target.lanes
    columns = [np.broadcast_to(a.reshape(-1, *(1,) * (x.ndim - 2)), x.shape) for a in (scale, bias)]
    batch, channels, *positions = _axes([out, x, *columns])
    each = channels.size // step.groups
    groups = Axis(step.groups, tuple(each * s for s in channels.strides))
    outer, inner = [batch, groups], [Axis(each, channels.strides), *positions]
    if channels.strides[1] == 4 and 1 < each < FEW * lanes and prod(axis.size for axis in positions) > 1:
        rest = tuple(by_memory([batch]))
        args = (channels, each, tuple(by_memory(positions)), step.eps, True, False, _SCALE_AND_SHIFT)
        return [selector.launch(ColumnNormalize(lanes, rest, *args), [out, x, scale, bias])]
    kernel = _kernel(lanes, by_memory(outer), by_memory(inner), step.eps, True, False, _SCALE_AND_SHIFT)
    return [selector.launch(kernel, [out, x, scale, bias])]


def _axes(tensors: Sequence[Array]) -> list[Axis]:
    """The axes of tensors of one shape."""
    return [Axis(n, tuple(t.strides[k] for t in tensors)) for k, n in enumerate(tensors[0].shape)]


@record()
class RowNormalize(Kernel):
    """(x − mean) / √(variance + eps) over the inner axes, then the epilogue. Pointers: to, from, operands.

    Without `center`: x / √(mean of x² + eps). `outside`: eps is added to the root.
    """

    lanes: int
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    eps: float
    center: bool
    outside: bool
    epilogue: Expression

    @property
    def code(self) -> RowNormalize:
        return replace(self, outer=unbounded(self.outer))

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer)

    @property
    def cycles(self) -> float:
        each = 6 + 2 * self.epilogue.operands + expression_cycles(self.epilogue)
        return self.count * (80 + prod(axis.size for axis in self.inner) / 8 * each)

    def write(self, function: Function) -> None:
        f, span = function, Span(self.lanes, self.inner)
        tensors = 1 + self.epilogue.operands
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(tensors)]
        strides = span.strides

        def value(at: list[Value], count: int | None) -> Vector:
            return Vector(f, read(f, at[1], 0, strides[1], count))

        def mean_of(places: list[Value], term: Vector | None) -> Vector:
            """The mean of x where there is no term, else that of (x − term)²."""

            def each(at: list[Value], count: int | None, carried: list[Value]) -> list[Value]:
                x = value(at, count)
                total = Vector(f, carried[0])
                if term is not None:
                    x = x - term
                if count is not None:
                    x = x.where(f.mask(count), 0.0)
                return [(x + total if term is None else x.times_plus(x, total)).value]

            (chains,) = span.walk(f, places, each, [f.zero()])
            total = reduce(lambda a, b: f.arithmetic("fadd", a, b), chains)
            return Vector(f, across(f, total, lambda a, b: f.arithmetic("fadd", a, b))) / float(span.size)

        def unit(index: Value, _: list[Value]) -> None:
            places = moved(f, pointers, offsets(f, index, self.outer, tensors))
            mean = mean_of(places, None) if self.center else None
            spread = mean_of(places, mean if mean is not None else Vector(f, f.zero()))
            scale = factor(spread, self.eps, outside=self.outside)

            def result(at: list[Value], count: int | None, _: list[Value]) -> list[Value]:
                x = value(at, count)
                x = (x if mean is None else x - mean) * scale
                operands = [read(f, at[k], 0, strides[k], count) for k in range(2, tensors)]
                write(f, evaluate(f, self.epilogue, [x.value, *operands])[0], at[0], 0, strides[0], count)
                return []

            span.walk(f, places, result)

        f.loop(f["begin"], f["end"], 1, unit)
