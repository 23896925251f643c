"""Remove taps of convolutions that read only padding: Conv(x, w) → Conv(x, slice of w) with smaller pads.

With a dilation as large as the map, as in atrous spatial pyramid pooling, only the centre of a 3 × 3 kernel remains.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.core.size import is_size
from irload.plan.ir.derivations import KeptTaps
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ConvStep


def drop_taps(program: Program) -> None:
    """Remove taps that read only padding, unless a weight is infinite or NaN: its product with padding is NaN."""
    program.rewrite(ConvStep, _reduced)


def _needed(step: ConvStep, axis: int) -> range:
    """Return a range of taps along an axis that contains all taps that read data for at least one output.

    The range is as small as possible without negative pads. For dilation 1 and a symbolic size, it has all taps.
    """
    size, count, kernel = (v.shape[k + axis] for v, k in ((step.inputs[0], 2), (step.output, 2), (step.inputs[1], 3)))
    stride, dilation = step.strides[axis], step.dilations[axis]
    begin, end = step.pads_begin[axis], step.pads_end[axis]
    if dilation == 1 and is_size(size):
        # Only maps smaller than the kernel need fewer taps, and the test would record a guard.
        return range(kernel)

    def reads(tap: int) -> bool:
        offset = tap * dilation - begin
        first = max(0, -(offset // stride))
        return first < count and first * stride + offset < size  # records few guards, since both hold for large maps

    taps = [k for k in range(kernel) if reads(k)]
    first = min(taps[0], max(begin, 0) // dilation) if taps else 0
    last = max(taps[-1], kernel - 1 - max(end, 0) // dilation) if taps else kernel - 1
    return range(first, last + 1)


def _reduced(step: ConvStep) -> list[Step] | None:
    """Return the convolution with the needed taps; None if it needs all, or its weights are not constant and finite."""
    data, weights, *others = step.inputs
    kernel, needed = weights.shape[3:], [_needed(step, axis) for axis in range(len(step.strides))]
    if all(len(taps) == k for taps, k in zip(needed, kernel, strict=True)):
        return None
    if weights.source is None or not np.isfinite(weights.source.array).all():
        return None
    kept = KeptTaps(tuple(taps.start for taps in needed), tuple(taps.stop for taps in needed))
    begin = (b - t.start * d for b, t, d in zip(step.pads_begin, needed, step.dilations, strict=True))
    end = (e - (k - t.stop) * d for e, k, t, d in zip(step.pads_end, kernel, needed, step.dilations, strict=True))
    inputs = [data, weights.by(kept), *others]
    return [replace(step, inputs=inputs, pads_begin=tuple(begin), pads_end=tuple(end))]
