"""Which steps the kernels take. Compute is always one of them, so that NumPy runs every operation there is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from irload.ops.windows import FAR, dilated
from irload.plan.backends.numpy.kernels.instructions import TABLE
from irload.plan.backends.numpy.measured import LARGEST_MATRIX, LONGEST_SEQUENCE, LONGEST_WINDOW
from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Step
from irload.plan.ir.steps import (
    Compute,
    Concat,
    Conv,
    Elementwise,
    Gather,
    GroupNormalize,
    Pool,
    Recurrent,
    Reduce,
    Relayout,
    Resample,
    ViewOp,
    WithEpilogue,
)

F32 = np.dtype(np.float32)


def supports(step: Step) -> bool:
    """True where a kernel runs the step."""
    if isinstance(step, Compute | ViewOp | Concat | Gather | Relayout):
        return True
    if isinstance(step, Elementwise):
        return all(v.dtype == F32 for v in (*step.inputs, *step.outputs)) and _has_instructions(step.expression)
    if isinstance(step, WithEpilogue) and not _has_instructions(step.epilogue):
        return False
    filled = all(v.size for v in (*step.inputs, *step.outputs))
    return filled and _LIMITS.get(type(step), _always)(step)


def _has_instructions(expression: Expression) -> bool:
    return all(
        # elu multiplies alpha by zero where its operand is positive
        i.opcode in TABLE and (i.opcode != "elu" or abs(i.numbers[0]) < float(np.finfo(F32).max))
        for i in expression.instructions
    )


def _always(step: Step) -> bool:
    return True


def _is_near(shape: tuple[int, ...], kernel: tuple[int, ...], step: Conv | Pool) -> bool:
    """True where windows lie so close that an array of all they span is not much larger than data and windows."""
    axes = zip(step.output.shape[2:], kernel, step.strides, step.dilations, shape[2:], strict=True)
    return all((n - 1) * s + dilated(k, d) <= FAR * (size + n * k) for n, k, s, d, size in axes)


def _conv(step: Conv) -> bool:
    return _is_near(step.inputs[0].shape, step.inputs[1].shape[3:], step)


def _pool(step: Pool) -> bool:
    return max(step.kernel) <= LONGEST_WINDOW and _is_near(step.inputs[0].shape, step.kernel, step)


def _reduce(step: Reduce) -> bool:
    """Neighbouring axes: others would have to be moved first."""
    return all(b == a + 1 for a, b in pairwise(step.axes))


def _group_normalize(step: GroupNormalize) -> bool:
    return 3 <= len(step.inputs[0].shape) <= 5


def _resample(step: Resample) -> bool:
    return step.inputs[0].shape[step.axis] * len(step.index) <= LARGEST_MATRIX


def _recurrent(step: Recurrent) -> bool:
    return step.inputs[0].shape[1] <= LONGEST_SEQUENCE


_LIMITS: dict[type[Step], Callable[[Any], bool]] = {
    Conv: _conv,
    GroupNormalize: _group_normalize,
    Pool: _pool,
    Recurrent: _recurrent,
    Reduce: _reduce,
    Resample: _resample,
}
