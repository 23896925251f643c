"""Lowerings of poolings: with explicit windows, and with windows derived from the output size (adaptive)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np

from irload.core.size import alike
from irload.core.tensor import Array
from irload.graph import Node
from irload.ops.windows import NON_SPATIAL, Windowed
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import PoolStep, ResampleStep
from irload.plan.lowering.values import all_f32, apart, ending, resized

MANY_TAPS = 25
"""Minimum number of elements of a window for which a maximum with strides of 1 is computed axis by axis."""


def pooling(node: Node, inputs: list[Value], outputs: list[Value]) -> Step | list[Step] | None:
    """Lower MaxPool and AvgPool if only the pooled values are used."""
    (data,) = inputs
    op = cast(Windowed, node.op)
    attributes = op.attributes
    if not all_f32(inputs) or any(o.used for o in outputs[1:]):
        return None
    spatial = len(data.shape) - NON_SPATIAL
    pads = op.pads(data.shape[2:], attributes["kernel"])
    mean = node.type == "AvgPool"
    full = mean and not attributes["exclude_pad"] and any(p for pair in pads for p in pair)
    step = PoolStep(
        inputs,
        outputs[:1],
        kind="mean" if mean else "max",
        kernel=attributes["kernel"],
        strides=apart(op.per_axis("strides", spatial), outputs[0].shape[2:]),
        dilations=apart(op.per_axis("dilations", spatial), attributes["kernel"]),
        pads_begin=tuple(b for b, _ in pads),
        divisor="full" if full else "real",
    )
    is_split = not mean and prod(step.kernel) >= MANY_TAPS and all(alike(s, 1) for s in step.strides)
    return _along_axes(step) if is_split else step


def _along_axes(pool: PoolStep) -> list[Step]:
    """Return the steps that compute a maximum axis by axis."""
    (data,), shape = pool.inputs, pool.output.shape
    spatial = len(shape) - NON_SPATIAL
    steps: list[Step] = []

    def alone(axis: int, values: Sequence[int], other: int) -> tuple[int, ...]:
        return tuple(value if k == axis else other for k, value in enumerate(values))

    for axis in range(spatial):
        if pool.kernel[axis] > 1 or not alike(data.shape[NON_SPATIAL + axis], shape[NON_SPATIAL + axis]):
            steps.append(
                replace(
                    pool,
                    inputs=[data],
                    outputs=[resized(data, NON_SPATIAL + axis, shape[NON_SPATIAL + axis])],
                    kernel=alone(axis, pool.kernel, 1),
                    dilations=alone(axis, pool.dilations, 1),
                    pads_begin=alone(axis, pool.pads_begin, 0),
                )
            )
            data = steps[-1].output
    return ending(data, steps, pool.outputs)


def adaptive(node: Node, inputs: list[Value], outputs: list[Value]) -> list[Step] | None:
    """Lower adaptive pooling: to a pooling if windows are disjoint and of equal size; other means to steps per axis."""
    data, out = inputs[0], outputs[0]
    if not all_f32([data, out]) or not data.size or not out.size or any(o.used for o in outputs[1:]):
        return None
    sizes, counts = data.shape[NON_SPATIAL:], out.shape[NON_SPATIAL:]
    mean = node.type == "AdaptiveAvgPool"
    if not any(size % count for size, count in zip(sizes, counts, strict=True)):
        kind, kernel = "mean" if mean else "max", tuple(s // n for s, n in zip(sizes, counts, strict=True))
        ones, begin = (1,) * len(kernel), (0,) * len(kernel)
        strides = apart(kernel, counts)
        return [PoolStep([data], [out], kind=kind, kernel=kernel, strides=strides, dilations=ones, pads_begin=begin)]
    if not mean:
        return None
    from irload.ops.image.taps import Taps  # rarely used, so imported on demand

    steps: list[Step] = []
    for axis in range(NON_SPATIAL, len(data.shape)):
        if data.shape[axis] != out.shape[axis]:
            taps = Taps(*_means(data.shape[axis], out.shape[axis]))
            steps.append(ResampleStep([data], [resized(data, axis, out.shape[axis])], axis=axis, taps=taps))
            data = steps[-1].output
    return ending(data, steps, [out])


def _means(size: int, count: int) -> tuple[Array, Array]:
    """Return the taps [count, taps] of each window's mean along an axis, and their weights.

    A shorter window repeats its last element for the missing taps and divides its weight among them: a tap of weight 0
    would turn infinity into NaN.
    """
    from irload.ops.pooling.adaptive import bins  # rarely used, so imported on demand

    windows, which = bins(size, count)
    start, stop = (np.array(ends)[:, None] for ends in zip(*windows, strict=True))
    length, tap = stop - start, np.arange(max(b - a for a, b in windows))
    sharing = np.where(tap >= length - 1, tap.size - length + 1, 1)
    return np.minimum(start + tap, stop - 1)[which], (1 / (length * sharing)).astype(np.float32)[which]
