"""Which kernel normalizes rows, or groups of channels."""

from __future__ import annotations

import numpy as np

from irload.plan.backends.llvm.axes import Axis, axes_of, by_memory, size_of
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.column_normalization import ColumnNormalize
from irload.plan.backends.llvm.kernels.normalization import Formula, RowNormalize
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import FEW_GROUPED
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.steps import GroupNormalizeStep, NormalizeStep

_SCALE_AND_SHIFT = Expression(3, (Instruction("multiply", (0, 1)), Instruction("add", (3, 2))))


def select_normalize(step: NormalizeStep, selector: Selector) -> list[Launch]:
    """A normalization over trailing axes."""
    x, out = selector.array(step.inputs[0]), selector.array(step.output)
    operands = [selector.array(v) for v in step.operands]
    axes = axes_of(out.shape, out.strides, x.strides, *(np.broadcast_to(a, out.shape).strides for a in operands))
    outer = by_memory([axis for k, axis in enumerate(axes) if k not in step.axes])
    inner = by_memory([axes[k] for k in step.axes])
    how = Formula(step.eps, step.center, step.outside, step.epilogue)
    return [selector.launch(_kernel(selector.target.lanes, outer, inner, how), [out, x, *operands])]


def _kernel(lanes: int, outer: list[Axis], inner: list[Axis], how: Formula) -> Kernel:
    """The kernel with vectors along the axis on which x is contiguous."""
    inner = inner or [Axis(1, (SIZES[F32],) * how.tensors)]
    nearest = min(abs(axis.strides[1]) for axis in inner)
    columns = next((axis for axis in outer if 0 < abs(axis.strides[1]) < nearest), None)
    if columns is None:
        return RowNormalize(lanes, tuple(outer), tuple(inner), how)
    rest = tuple(axis for axis in outer if axis is not columns)
    return ColumnNormalize(lanes, rest, tuple(inner), how, columns, 1)


def select_group_normalize(step: GroupNormalizeStep, selector: Selector) -> list[Launch]:
    """A normalization over groups of channels, whose scale and shift are an epilogue."""
    x, scale, bias = (selector.array(v) for v in step.inputs)
    out, lanes = selector.array(step.output), selector.target.lanes
    columns = [np.broadcast_to(a.reshape(-1, *(1,) * (x.ndim - 2)), x.shape).strides for a in (scale, bias)]
    batch, channels, *positions = axes_of(x.shape, out.strides, x.strides, *columns)
    each = channels.size // step.groups
    groups = Axis(step.groups, tuple(each * s for s in channels.strides))
    outer, inner = [batch, groups], [Axis(each, channels.strides), *positions]
    how = Formula(step.eps, True, False, _SCALE_AND_SHIFT)
    kernel = _kernel(lanes, by_memory(outer), by_memory(inner), how)
    if channels.strides[1] == SIZES[F32] and 1 < each < FEW_GROUPED * lanes and size_of(positions) > 1:
        rest, inside = tuple(by_memory([batch])), tuple(by_memory(positions))
        kernel = ColumnNormalize(lanes, rest, inside, how, channels, each)
    return [selector.launch(kernel, [out, x, scale, bias])]
