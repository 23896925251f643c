"""Poolings: over windows that the operation describes, and over those that follow from an output's size."""

from __future__ import annotations

from typing import cast

import numpy as np

from irload.core.tensor import Array
from irload.graph import Node
from irload.ops.windows import NON_SPATIAL, Windowed
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import Pool, Resample
from irload.plan.lowering.values import all_f32, apart, ending, resized


def pooling(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | None:
    """MaxPool and AvgPool of which only the pooled values are used."""
    (data,) = inputs
    op = cast(Windowed, node.op)
    attributes = op.attributes
    if not all_f32(inputs) or any(o.used for o in outputs[1:]):
        return None
    spatial = len(data.shape) - NON_SPATIAL
    pads = op.pads(data.shape[2:], attributes["kernel"])
    mean = node.type == "AvgPool"
    full = mean and not attributes["exclude_pad"] and any(p for pair in pads for p in pair)
    return Pool(
        inputs,
        outputs[:1],
        kind="mean" if mean else "max",
        kernel=attributes["kernel"],
        strides=apart(op.per_axis("strides", spatial), outputs[0].shape[2:]),
        dilations=apart(op.per_axis("dilations", spatial), attributes["kernel"]),
        pads_begin=tuple(b for b, _ in pads),
        divisor="full" if full else "real",
    )


def adaptive(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """A pooling where all windows of an axis are of one size, and none overlap; else means along one axis at a time."""
    data, out = inputs[0], outputs[0]
    if not all_f32([data, out]) or not data.size or not out.size or any(o.used for o in outputs[1:]):
        return None
    sizes, counts = data.shape[NON_SPATIAL:], out.shape[NON_SPATIAL:]
    mean = node.type == "AdaptiveAvgPool"
    if not any(size % count for size, count in zip(sizes, counts, strict=True)):
        kind, kernel = "mean" if mean else "max", tuple(s // n for s, n in zip(sizes, counts, strict=True))
        ones, begin = (1,) * len(kernel), (0,) * len(kernel)
        strides = apart(kernel, counts)
        return [Pool([data], [out], kind=kind, kernel=kernel, strides=strides, dilations=ones, pads_begin=begin)]
    if not mean:
        return None
    steps: list[Step] = []
    for axis in range(NON_SPATIAL, len(data.shape)):
        if data.shape[axis] != out.shape[axis]:
            index, weight = _means(data.shape[axis], out.shape[axis])
            steps.append(
                Resample([data], [resized(data, axis, out.shape[axis])], axis=axis, index=index, weight=weight)
            )
            data = steps[-1].output
    return ending(data, steps, [out])


def _means(size: int, count: int) -> tuple[Array, Array]:
    """The taps [count, taps] of the mean of each window along an axis, and their weights.

    Where a window has fewer, its last element stands for all that are missing and shares its weight with them: one of
    weight 0 would make NaN of infinity.
    """
    from irload.ops.pooling.adaptive import bins  # few models pool so

    windows, which = bins(size, count)
    start, stop = (np.array(ends)[:, None] for ends in zip(*windows, strict=True))
    length, tap = stop - start, np.arange(max(b - a for a, b in windows))
    sharing = np.where(tap >= length - 1, tap.size - length + 1, 1)
    return np.minimum(start + tap, stop - 1)[which], (1 / (length * sharing)).astype(np.float32)[which]
