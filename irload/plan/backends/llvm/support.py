"""Which steps the compiled kernels take. Asked of every step before memory is planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.plan.backends.llvm.expressions import supports_expression
from irload.plan.backends.llvm.kernels.windows import WindowAxis, conv_axes, pool_axes
from irload.plan.backends.llvm.selection import SELECTIONS
from irload.plan.ir.program import Step
from irload.plan.ir.steps import (
    INDICES,
    Attention,
    Compute,
    Concat,
    Conv,
    ConvTranspose,
    Elementwise,
    Gather,
    Pool,
    Relayout,
    Sample,
    ViewOp,
    WithEpilogue,
)

F32 = np.dtype(np.float32)


def supports(step: Step) -> bool:
    """True where a kernel runs the step."""
    if isinstance(step, Compute) or type(step) not in SELECTIONS:
        return False
    if isinstance(step, Elementwise) and not supports_expression(step.expression):
        return False
    if isinstance(step, WithEpilogue) and not supports_expression(step.epilogue):
        return False
    if isinstance(step, ViewOp | Concat | Relayout):
        return all(v.size and _is_copied(v.dtype) for v in (*step.inputs, *step.outputs))
    if isinstance(step, Gather):
        data, indices = step.inputs
        return all(v.size for v in step.inputs) and _is_copied(data.dtype) and indices.dtype.name in INDICES
    masks = step.inputs[3:] if isinstance(step, Attention) else []
    values = [v for v in (*step.inputs, *step.outputs) if v.size == 0 or v not in masks]
    return all(v.dtype == F32 and v.size for v in values) and _LIMITS.get(type(step), _always)(step)


def _is_copied(dtype: np.dtype[Any]) -> bool:
    return not dtype.hasobject and dtype.itemsize in (1, 2, 4, 8)


def _always(step: Step) -> bool:
    return True


def _conv(step: Conv) -> bool:
    return all(axis.is_near for axis in conv_axes(step))


def _conv_transpose(step: ConvTranspose) -> bool:
    from irload.plan.backends.llvm.kernels.conv_transpose import MOST_PHASES, count_phases

    x, w = step.inputs
    axes = zip(x.shape[2:], step.output.shape[2:], w.shape[3:], step.strides, step.dilations, step.begin, strict=True)
    return count_phases(step) <= MOST_PHASES and all(WindowAxis(*numbers).is_near for numbers in axes)


def _pool(step: Pool) -> bool:
    return all(axis.is_near for axis in pool_axes(step))


def _sample(step: Sample) -> bool:
    from irload.plan.backends.llvm.kernels.grid_points import LONGEST_SIDE

    return max(step.inputs[0].shape[2:]) <= LONGEST_SIDE


_LIMITS: dict[type[Step], Callable[[Any], bool]] = {
    Conv: _conv,
    ConvTranspose: _conv_transpose,
    Pool: _pool,
    Sample: _sample,
}
