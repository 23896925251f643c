"""Convolutions."""

from __future__ import annotations

from typing import cast

from irload.graph import Node
from irload.ops.convolution.backward import BackpropBase
from irload.ops.windows import Windowed
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ConvStep, ConvTransposeStep
from irload.plan.lowering.values import all_f32, apart


def convolution(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower convolutions with constant filters."""
    data, weights = inputs
    spatial = len(data.shape) - 2
    if weights.source is None or not all_f32([*inputs, *outputs]):
        return None
    weights = weights if node.type == "GroupConvolution" else _one_group(weights, weights.source)
    op = cast(Windowed, node.op)
    pads = op.pads(data.shape[2:], weights.shape[3:])
    return ConvStep(
        [data, weights],
        outputs,
        strides=apart(op.per_axis("strides", spatial), outputs[0].shape[2:]),
        dilations=apart(op.per_axis("dilations", spatial), weights.shape[3:]),
        pads_begin=tuple(b for b, _ in pads),
        pads_end=tuple(e for _, e in pads),
    )


def transposed(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Lower transposed convolutions with constant filters."""
    data, weights, *asked = inputs
    op = cast(BackpropBase, node.op)
    if weights.source is None or not all_f32([data, weights, *outputs]):
        return None
    weights = weights if node.type == "GroupConvolutionBackpropData" else _one_group(weights, weights.source)
    kernel = weights.shape[3:]
    pads = op.begins(data.shape[2:], kernel, outputs[0].shape[2:] if asked else None)
    return ConvTransposeStep(
        [data, weights],
        outputs,
        strides=apart(op.per_axis("strides", len(kernel)), data.shape[2:]),
        dilations=apart(op.per_axis("dilations", len(kernel)), kernel),
        begin=pads,
    )


def _one_group(weights: Value, source: Constant) -> Value:
    """Return the weights with a leading axis of groups."""
    shape = (1, *weights.shape)
    return Value(
        shape, weights.dtype, source.derived("one group", shape, lambda w: w[None], moves=True), name=weights.name
    )
