"""Convolutions and poolings."""

from __future__ import annotations

from typing import cast

import numpy as np

from irload.graph import Node
from irload.ops.windows import Windowed
from irload.plan.lowering import all_f32, lowers
from irload.plan.program import Step, Value
from irload.plan.steps import Pool, Window


@lowers("Convolution", "GroupConvolution")
def convolution(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Convolutions of one or two spatial axes with constant filters."""
    data, weights = inputs
    spatial = len(data.shape) - 2
    if weights.constant is None or spatial not in (1, 2) or not all_f32([*inputs, *outputs]) or not outputs[0].size:
        return None
    array = weights.constant if node.type == "GroupConvolution" else weights.constant[None]
    op = cast(Windowed, node.op)
    pads = op.pads(data.shape[2:], array.shape[3:])
    if min(p for pair in pads for p in pair) < 0:
        return None
    return Window(
        [data, Value(array.shape, np.dtype(np.float32), array, name=weights.name)],
        outputs,
        strides=op.per_axis("strides", spatial),
        dilations=op.per_axis("dilations", spatial),
        pads_begin=tuple(b for b, _ in pads),
        pads_end=tuple(e for _, e in pads),
    )


@lowers("MaxPool", "AvgPool")
def pooling(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """Poolings that round down, where only the pooled values are used."""
    (data,) = inputs
    op = cast(Windowed, node.op)
    attributes = op.attributes
    spatial = len(data.shape) - 2
    if spatial not in (1, 2) or data.dtype != np.float32 or not outputs[0].size or any(o.used for o in outputs[1:]):
        return None
    if any(d != 1 for d in attributes.get("dilations", ())) or attributes["rounding_type"] != "floor":
        return None
    kernel = attributes["kernel"]
    pads = op.pads(data.shape[2:], kernel)
    padded = any(p for pair in pads for p in pair)
    mean = node.type == "AvgPool"
    if op.pads_same and mean:
        return None
    full = mean and not attributes["exclude_pad"] and padded
    return Pool(
        inputs,
        outputs[:1],
        kind="mean" if mean else "max",
        kernel=kernel,
        strides=op.per_axis("strides", spatial),
        pads_begin=tuple(b for b, _ in pads),
        pads_end=tuple(e for _, e in pads),
        divisor="full" if full else "real",
    )
