"""Pooling on channels-last data: maxima or sums of shifted blocks, one spatial axis after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.tiles import cut
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.measured import FEW_ELEMENTS
from irload.plan.threads import ThreadCalls


def pool(kind: str, x: Array, out: Array, axes: Sequence[WindowAxis], divisor: str, scratch: Scratch) -> Phases:
    """Pool x [N,X…,C] to out [N,Y…,C]. `axes`: the windows along each spatial axis.

    Threads share the first spatial axis.
    """
    combine = np.fmax if kind == "max" else np.add
    fill = float(np.finfo(np.float32).min) if kind == "max" else 0.0
    scale = _scale(axes, divisor) if kind == "mean" else None
    parts: list[ThreadCalls] = []
    for start, stop in cut(axes[0].count, scratch.threads if out.size >= FEW_ELEMENTS else 1):
        part: ThreadCalls = []
        first = replace(axes[0], begin=axes[0].begin - start * axes[0].stride, count=stop - start)
        windows = [first, *axes[1:]]
        shape = [a.reach for a in windows]
        band = scratch.take((*shape, x.shape[-1]))
        stages = [band]
        for k, axis in enumerate(windows[:-1]):
            shape[k] = axis.count
            stages.append(scratch.take((*shape, x.shape[-1])))
        target, source = _overlap(windows)
        for sample in range(len(x)):
            if band[target].size < band.size:
                part.append((band.fill, (fill,)))
            if band[target].size:
                part.append((np.copyto, (band[target], x[sample][source])))
            result = out[sample, start:stop]
            for k, (stage, axis, reduced) in enumerate(zip(stages, windows, [*stages[1:], result], strict=True)):
                part += _combined(combine, [stage[index] for index in axis.slices(stage.ndim, k)], reduced)
            if kind == "max":  # ignores NaN; the result of a window with only NaN is the lowest number
                part.append((np.fmax, (result, np.float32(fill), result)))
            if scale is not None:
                part.append((np.multiply, (result, scale[start:stop], result)))
        parts.append(part)
    return [parts]


def _overlap(axes: Sequence[WindowAxis]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the overlap of all windows with the data: range in the windows, range in the data."""
    ranges = [(max(-a.begin, 0), max(min(a.reach - a.begin, a.size), -a.begin, 0)) for a in axes]
    inside = tuple(slice(start + a.begin, stop + a.begin) for (start, stop), a in zip(ranges, axes, strict=True))
    return inside, tuple(slice(*r) for r in ranges)


def _combined(combine: Callable[..., Any], arrays: list[Array], out: Array) -> ThreadCalls:
    if len(arrays) == 1:
        return [(np.copyto, (out, arrays[0]))]
    calls: ThreadCalls = [(combine, (arrays[0], arrays[1], out))]
    return calls + [(combine, (out, a, out)) for a in arrays[2:]]


def _scale(axes: Sequence[WindowAxis], divisor: str) -> Array:
    """Return [Y…,1]: the reciprocal of the number of elements in each mean."""
    counts = np.ones((), np.int64)
    for axis in axes:
        counts = counts[..., None] * (np.full(axis.count, axis.kernel) if divisor == "full" else axis.real)
    return frozen((1 / np.maximum(counts, 1)).astype(np.float32))[..., None]
