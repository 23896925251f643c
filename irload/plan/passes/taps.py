"""Taps of convolutions that meet nothing but padding: Conv(x, w) → Conv(x, w without them) with smaller pads.

With a dilation as large as the map, as the last ones of atrous pyramids have, that is all of 3 × 3 but the middle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import Conv


def drop_taps(program: Program) -> None:
    """Have convolutions do without such taps, unless a weight is infinite or NaN: times padding that is NaN."""
    for step in program.steps:
        if isinstance(step, Conv):
            needed = [_needed(step, axis) for axis in range(len(step.strides))]
            if any(len(n) < k for n, k in zip(needed, step.inputs[1].shape[3:], strict=True)):
                reduced = _reduced(step, needed)
                if reduced is not None:
                    program.replace([step], [reduced])


def _needed(step: Conv, axis: int) -> range:
    """The taps along an axis that read the data for some output, with more where a pad would be negative otherwise."""
    size, count, kernel = (v.shape[k + axis] for v, k in ((step.inputs[0], 2), (step.output, 2), (step.inputs[1], 3)))
    stride, dilation = step.strides[axis], step.dilations[axis]
    begin, end = step.pads_begin[axis], step.pads_end[axis]

    def reads(tap: int) -> bool:
        start = tap * dilation - begin
        inside = max(0, -(start // stride))  # the first output whose element is not before the data
        return inside < count and start + inside * stride < size

    taps = [k for k in range(kernel) if reads(k)]
    first = min(taps[0], max(begin, 0) // dilation) if taps else 0
    last = max(taps[-1], kernel - 1 - max(end, 0) // dilation) if taps else kernel - 1
    return range(first, last + 1)


def _reduced(step: Conv, needed: list[range]) -> Conv | None:
    """The convolution with these taps alone, None where it would not be the same."""
    data, weights, *others = step.inputs
    if weights.source is None or not np.isfinite(weights.source.array).all():
        return None
    index = (..., *(slice(taps.start, taps.stop) for taps in needed))
    shape = (*weights.shape[:3], *map(len, needed))
    source = weights.source.derived(("taps", *needed), shape, lambda w: w[index], moves=True)
    kernel = weights.shape[3:]
    return replace(
        step,
        inputs=[data, Value(shape, weights.dtype, source, name=weights.name), *others],
        pads_begin=tuple(b - t.start * d for b, t, d in zip(step.pads_begin, needed, step.dilations, strict=True)),
        pads_end=tuple(
            e - (k - t.stop) * d for e, k, t, d in zip(step.pads_end, kernel, needed, step.dilations, strict=True)
        ),
    )
