"""Convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from irload.graph import Node
from irload.ops.convolution.backward import BackpropBase
from irload.ops.windows import Windowed
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Conv, ConvTranspose, Pool
from irload.plan.lowering.values import all_f32


def _apart(given: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    """Strides or dilations, 1 along axes of one element, where any number may stand in the file."""
    return tuple(1 if count == 1 else n for n, count in zip(given, counts, strict=True))


def convolution(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Convolutions with constant filters."""
    data, weights = inputs
    spatial = len(data.shape) - 2
    if weights.source is None or not all_f32([*inputs, *outputs]):
        return None
    weights = weights if node.type == "GroupConvolution" else _one_group(weights, weights.source)
    op = cast(Windowed, node.op)
    pads = op.pads(data.shape[2:], weights.shape[3:])
    return Conv(
        [data, weights],
        outputs,
        strides=_apart(op.per_axis("strides", spatial), outputs[0].shape[2:]),
        dilations=_apart(op.per_axis("dilations", spatial), weights.shape[3:]),
        pads_begin=tuple(b for b, _ in pads),
        pads_end=tuple(e for _, e in pads),
    )


def transposed(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Transposed convolutions with constant filters."""
    data, weights, *asked = inputs
    op = cast(BackpropBase, node.op)
    if weights.source is None or not all_f32([data, weights, *outputs]):
        return None
    weights = weights if node.type == "GroupConvolutionBackpropData" else _one_group(weights, weights.source)
    kernel = weights.shape[3:]
    pads = op.begins(data.shape[2:], kernel, outputs[0].shape[2:] if asked else None)
    return ConvTranspose(
        [data, weights],
        outputs,
        strides=_apart(op.per_axis("strides", len(kernel)), data.shape[2:]),
        dilations=_apart(op.per_axis("dilations", len(kernel)), kernel),
        begin=pads,
    )


def pooling(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Poolings of which only the pooled values are used."""
    (data,) = inputs
    op = cast(Windowed, node.op)
    attributes = op.attributes
    if data.dtype != np.float32 or any(o.used for o in outputs[1:]):
        return None
    spatial = len(data.shape) - 2
    pads = op.pads(data.shape[2:], attributes["kernel"])
    mean = node.type == "AvgPool"
    full = mean and not attributes["exclude_pad"] and any(p for pair in pads for p in pair)
    return Pool(
        inputs,
        outputs[:1],
        kind="mean" if mean else "max",
        kernel=attributes["kernel"],
        strides=_apart(op.per_axis("strides", spatial), outputs[0].shape[2:]),
        dilations=_apart(op.per_axis("dilations", spatial), attributes["kernel"]),
        pads_begin=tuple(b for b, _ in pads),
        divisor="full" if full else "real",
    )


def _one_group(weights: Value, source: Constant) -> Value:
    """The weights with an axis of groups in front."""
    shape = (1, *weights.shape)
    return Value(
        shape, weights.dtype, source.derived("one group", shape, lambda w: w[None], moves=True), name=weights.name
    )
