"""The steps that NumPy kernels run: for each kind the selection of kernels, and their limits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from irload.ops.windows import FAR
from irload.plan.backends.numpy.kernels.instructions import TABLE as INSTRUCTIONS
from irload.plan.backends.numpy.measured import LARGEST_MATRIX, LONGEST_SEQUENCE, LONGEST_WINDOW
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.backends.table import StepRow, StepTable
from irload.plan.ir import steps as ir
from irload.plan.ir.expression import Instruction
from irload.plan.ir.program import Step

STORED = {np.dtype(np.float32), np.dtype(np.uint8)}
"""The types of operands and results of expressions."""


def _elementwise(step: ir.ElementwiseStep) -> bool:
    return _has_instructions(step) and {v.dtype for v in (*step.inputs, *step.outputs)} <= STORED


def _computes(step: Step) -> bool:
    return _has_instructions(step) and all(v.size for v in (*step.inputs, *step.outputs))


def _has_instructions(step: Step) -> bool:
    return all(i.opcode in INSTRUCTIONS and _is_exact(i) for i in step.elementwise_part.instructions)


def _is_exact(instruction: Instruction) -> bool:
    """False if temporaries in f32 would change the result of the instruction."""
    match instruction.opcode:
        case "convert":  # the argument of a conversion to u8 is an integer of this range, except if it is an i32
            return instruction.dtype in STORED
        case "elu":  # alpha is multiplied by 0 for positive operands, which is NaN for an infinite alpha
            return abs(instruction.numbers[0]) < float(np.finfo(np.float32).max)
        case _:
            return True


def _convolves(step: ir.ConvStep | ir.ConvTransposeStep) -> bool:
    return _computes(step) and step.inputs[1].is_constant


def _is_near(step: ir.ConvStep | ir.PoolStep) -> bool:
    """True if the span of all windows is not much larger than the data and the windows themselves."""
    return all(axis.reach <= FAR * (axis.size + axis.count * axis.kernel) for axis in step.windows)


def _pool(step: ir.PoolStep) -> bool:
    return max(step.kernel) <= LONGEST_WINDOW and _is_near(step)


def _reduces(step: ir.ReduceStep) -> bool:
    return _computes(step) and step.output.dtype == np.float32


def _reduce(step: ir.ReduceStep) -> bool:
    """True for consecutive axes; others would require a transpose."""
    return all(b == a + 1 for a, b in pairwise(step.axes))


def _resample(step: ir.ResampleStep) -> bool:
    return step.inputs[0].shape[step.axis] * step.output.shape[step.axis] <= LARGEST_MATRIX


TABLE = StepTable[Callable[[Any, NumpySelector], Selected]](
    f"{__package__}",
    {
        ir.AttentionStep: StepRow("matrices.attention", lambda s: _computes(s) and not s.has_sink),
        ir.BroadcastStep: StepRow("movement.view_or_copy"),
        ir.ComputeStep: StepRow("compute.compute", copies=True),
        ir.ConcatStep: StepRow("movement.concat"),
        ir.ConvStep: StepRow("convolutions.convolution", _convolves, _is_near),
        ir.ConvTransposeStep: StepRow("convolutions.conv_transpose", _convolves),
        ir.CumulativeSumStep: StepRow("compute.cumulative_sum", copies=True),
        ir.ElementwiseStep: StepRow("elementwise.elementwise", _elementwise),
        ir.ExpertMatMulStep: StepRow("matrices.expert_matmul"),
        ir.ExpertOrderStep: StepRow("compute.expert_order", copies=True),
        ir.GatherStep: StepRow("movement.gather"),
        ir.GroupNormalizeStep: StepRow("rows.group_normalize", _computes, lambda s: 3 <= len(s.inputs[0].shape) <= 5),
        ir.MatMulStep: StepRow("matrices.matmul", _computes),
        ir.NormalizeStep: StepRow("rows.normalize", _computes),
        ir.PoolStep: StepRow("convolutions.pool", _computes, _pool),
        ir.RecurrentStep: StepRow(
            "sequences.recurrent",
            lambda s: _computes(s) and not s.lengths,
            lambda s: s.inputs[0].shape[1] <= LONGEST_SEQUENCE,
        ),
        ir.ReduceStep: StepRow("rows.reduce", _reduces, _reduce),
        ir.RelayoutStep: StepRow("movement.relayout"),
        ir.ResampleStep: StepRow("resampling.resample", _computes, _resample),
        ir.ReshapeStep: StepRow("movement.view_or_copy"),
        ir.RotaryEmbeddingStep: StepRow("rows.rotary_embedding", _computes),
        ir.SampleStep: StepRow("compute.sample", _computes, copies=True),
        ir.ScatterStep: StepRow("compute.scatter", _computes, copies=True),
        ir.SliceStep: StepRow("movement.view_or_copy"),
        ir.SoftmaxStep: StepRow("rows.softmax", _computes),
        ir.TopKStep: StepRow("compute.top_k", _computes, copies=True),
        ir.TransposeStep: StepRow("movement.view_or_copy"),
    },
)
"""A selection returns a kernel's name, and its calls on the memory of the step."""
