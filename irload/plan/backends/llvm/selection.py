"""The table of steps that compiled kernels support: for each kind, the selection of kernels, limits, stored types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from irload.ops.sliding import window_axes
from irload.plan.backends.llvm.expressions import supports_expression, supports_integers
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.windows import is_near
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import MOST_PHASES
from irload.plan.backends.table import StepRow, StepTable, StoredValues
from irload.plan.ir import steps as ir
from irload.plan.ir.program import Step, Value
from irload.plan.memory.layout import Layout

F32, BF16 = np.dtype(np.float32), np.dtype(bfloat16)
U8, I8, BOOL = np.dtype(np.uint8), np.dtype(np.int8), np.dtype(bool)
I16, I32, I64 = np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64)

Layouts = Mapping[Value, Layout]


def _computes(step: Step, masks: Iterable[Value] = ()) -> bool:
    values = (*step.inputs, *step.outputs)
    return all(v.size and (v.dtype == F32 or v in masks) for v in values) and supports_expression(step.elementwise_part)


def _multiplies_or_maps(step: Step) -> bool:
    """True if all values are f32 or bytes (quantized)."""
    values = (*step.inputs, *step.outputs)
    return all(v.size and v.dtype in (F32, U8, I8) for v in values) and supports_expression(step.elementwise_part)


def _maps(step: ir.ElementwiseStep) -> bool:
    """True if all values are f32, bytes (quantized), booleans, i32 or i64."""
    values = (*step.inputs, *step.outputs)
    if not all(v.size and v.dtype in (F32, U8, I8, BOOL, I32, I64) for v in values):
        return False
    return supports_integers(step.expression, [v.dtype for v in step.inputs])


def _reduces(step: ir.ReduceStep) -> bool:
    return bool(step.inputs[0].size and step.output.size)


def _sums(step: ir.CumulativeSumStep) -> bool:
    return step.output.size > 0 and step.output.dtype in (F32, I32, I64)


def _matmul(step: ir.MatMulStep) -> bool:
    """For products of bytes: True if each row is contiguous and consists of whole words."""
    return not step.multiplies_integers or (step.matrix[2] % 4 == 0 and not step.transpose_a)


def _copies(step: Step) -> bool:
    return all(v.size and _is_copied(v.dtype) for v in (*step.inputs, *step.outputs))


def _is_copied(dtype: np.dtype[Any]) -> bool:
    return not dtype.hasobject and dtype.itemsize in (1, 2, 4, 8)


def _gather(step: ir.GatherStep) -> bool:
    data, indices = step.inputs
    return all(v.size for v in step.inputs) and _is_copied(data.dtype) and indices.dtype.name in ir.INDICES


def _near(step: ir.ConvStep | ir.PoolStep) -> bool:
    return all(map(is_near, step.windows))


def _conv_transpose(step: ir.ConvTransposeStep) -> bool:
    from irload.plan.backends.llvm.kernels.conv_transpose import count_phases

    x, w = step.inputs[:2]
    axes = window_axes(x.shape[2:], step.output.shape[2:], w.shape[3:], step.strides, step.dilations, step.begin)
    return count_phases(step) <= MOST_PHASES and all(map(is_near, axes))


def _sample(step: ir.SampleStep | ir.SampleSumStep) -> bool:
    from irload.plan.backends.llvm.kernels.grid_points import LONGEST_SIDE

    return max(step.inputs[0].shape[2:]) <= LONGEST_SIDE


def _of_matmul(step: ir.MatMulStep, layouts: Layouts, target: Target) -> Iterable[Value]:
    data = [step.inputs[0]] if _multiplies(step, target) else []
    return {*data, *step.operands, step.output} - {step.inputs[1]}


def _of_conv_transpose(step: ir.ConvTransposeStep, layouts: Layouts, target: Target) -> Iterable[Value]:
    return (step.inputs[0], *step.operands, step.output) if _multiplies(step, target) else ()


def _of_conv(step: ir.ConvStep, layouts: Layouts, target: Target) -> Iterable[Value]:
    from irload.plan.backends.llvm.kernels.depthwise import is_depthwise, largest_group
    from irload.plan.backends.llvm.kernels.precision import may_be_winograd

    data, weights = step.inputs[:2]
    results, multiplies = {*step.operands, step.output}, _multiplies(step, target)
    if is_depthwise(weights.shape, largest_group(target, bf16=True)) and data in layouts:
        return {data, *results}
    if multiplies:
        return {data, *results}
    return () if may_be_winograd(step) else results - {data}


def _multiplies(step: ir.ProductStep, target: Target) -> bool:
    from irload.plan.backends.llvm.kernels.precision import pays_in_bf16

    return pays_in_bf16(step, target)


_ALL: StoredValues = dict.fromkeys((BF16, I16), lambda s, *_: (*s.inputs, *s.outputs))


def _of_product(step: ir.ConvStep | ir.MatMulStep, *_: Any) -> Iterable[Value]:
    return step.inputs[0], *step.operands, step.output


TABLE = StepTable[Callable[[Any, Selector], list[Launch]]](
    f"{__package__}.kernels",
    {
        ir.AttentionStep: StepRow("attention.select_attention", lambda s: _computes(s, s.masks)),
        ir.BroadcastStep: StepRow("copying.select_view", _copies),
        ir.ConcatStep: StepRow("copying.select_concat", _copies),
        ir.ConvStep: StepRow(
            "convolution.select_convolution", _multiplies_or_maps, _near, {BF16: _of_conv, I16: _of_product}
        ),
        ir.ConvTransposeStep: StepRow(
            "conv_transpose.select_conv_transpose", _computes, _conv_transpose, {BF16: _of_conv_transpose}
        ),
        ir.CumulativeSumStep: StepRow("cumulative.select_cumulative_sum", _sums),
        ir.ElementwiseStep: StepRow("elementwise.select_elementwise", _maps, stored=_ALL),
        ir.ExpertMatMulStep: StepRow("experts.select_expert_matmul", lambda s: s.output.size),
        ir.ExpertOrderStep: StepRow("experts.select_expert_order", lambda s: s.inputs[0].size),
        ir.GatherStep: StepRow("gathering.select_gather", _gather),
        ir.GroupNormalizeStep: StepRow("normalization.select_group_normalize", _computes),
        ir.MatMulStep: StepRow(
            "matmul.select_matmul", _multiplies_or_maps, _matmul, stored={BF16: _of_matmul, I16: _of_product}
        ),
        ir.NormalizeStep: StepRow("normalization.select_normalize", _computes),
        ir.PoolStep: StepRow("pooling.select_pool", _multiplies_or_maps, _near, _ALL),
        ir.RecurrentStep: StepRow("recurrent_selection.select_recurrent", lambda s: _computes(s, s.lengths)),
        ir.ReduceStep: StepRow("reduction.select_reduce", _reduces, stored={BF16: lambda s, *_: s.inputs}),
        ir.RelayoutStep: StepRow("copying.select_relayout", _copies),
        ir.ResampleStep: StepRow("resampling.select_resample", _computes),
        ir.ReshapeStep: StepRow("copying.select_view", _copies),
        ir.RotaryEmbeddingStep: StepRow("elementwise.select_rotary_embedding", _computes),
        ir.SampleStep: StepRow("grid_sampling.select_sample", _computes, _sample),
        ir.SampleSumStep: StepRow("grid_sampling.select_sample_sum", lambda s: _computes(s, s.inputs[3:]), _sample),
        ir.ScatterStep: StepRow("ranking.select_scatter", lambda s: _computes(s, s.inputs[1:2])),
        ir.SliceStep: StepRow("copying.select_view", _copies),
        ir.SoftmaxStep: StepRow("softmax.select_softmax", _computes),
        ir.TopKStep: StepRow("ranking.select_top_k", lambda s: _computes(s, s.outputs[1:])),
        ir.TransposeStep: StepRow("copying.select_view", _copies),
    },
)
"""A selection returns the launches of a step, in order; none for a view that needs no copy.

The functions of stored types return the values that may be stored in this type. Arguments: step, layouts, target.
"""
