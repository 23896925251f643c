"""Pooling on channels-last data: shifted maxima or sums over blocks, one spatial axis after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.tiles import cut
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.measured import FEW_ELEMENTS
from irload.plan.threads import Part
from irload.record import record


@record()
class Axis:
    """Convs along one spatial axis: `kernel` elements, `dilation` apart, the first one `begin` before the data."""

    kernel: int
    stride: int
    dilation: int
    begin: int

    def span(self, count: int) -> int:
        """The elements that `count` windows cover."""
        return (count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1


def pool(
    kind: str, x: Array, out: Array, axes: Sequence[Axis], divisor: str, scratch: Scratch, threads: int
) -> list[list[Part]]:
    """X [N,X…,C] → out [N,Y…,C]. Threads share the first spatial axis."""
    combine = np.fmax if kind == "max" else np.add
    fill = float(np.finfo(np.float32).min) if kind == "max" else 0.0
    scale = _scale(x.shape, out.shape, axes, divisor) if kind == "mean" else None
    sizes, counts = x.shape[1:-1], out.shape[1:-1]
    parts: list[Part] = []
    for start, stop in cut(counts[0], threads if out.size >= FEW_ELEMENTS else 1):
        part: Part = []
        made = (stop - start, *counts[1:])
        first = (start * axes[0].stride - axes[0].begin, *(-a.begin for a in axes[1:]))
        shape = [a.span(n) for a, n in zip(axes, made, strict=True)]
        band = scratch.take((*shape, x.shape[-1]))
        stages = [band]
        for k in range(len(axes) - 1):
            shape[k] = made[k]
            stages.append(scratch.take((*shape, x.shape[-1])))
        target, source = _overlap(first, band.shape[:-1], sizes)
        for sample in range(len(x)):
            if band[target].size < band.size:
                part.append((band.fill, (fill,)))
            if band[target].size:
                part.append((np.copyto, (band[target], x[sample][source])))
            result = out[sample, start:stop]
            for k, axis in enumerate(axes):
                stage = stages[k + 1] if k + 1 < len(stages) else result
                lead = (slice(None),) * k
                reach = (made[k] - 1) * axis.stride + 1
                shifted = [
                    stages[k][(*lead, slice(i * axis.dilation, i * axis.dilation + reach, axis.stride))]
                    for i in range(axis.kernel)
                ]
                part += _combined(combine, shifted, stage)
            if kind == "max":  # NaN never wins, and of nothing else the lowest number is the largest
                part.append((np.fmax, (result, np.float32(fill), result)))
            if scale is not None:
                part.append((np.multiply, (result, scale[start:stop], result)))
        parts.append(part)
    return [parts]


def _overlap(
    first: Sequence[int], shape: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """What a block that begins at `first` shares with the data: where in the block, and where in the data."""
    ranges = [(max(f, 0), max(min(f + n, size), max(f, 0))) for f, n, size in zip(first, shape, sizes, strict=True)]
    inside = tuple(slice(a - f, b - f) for (a, b), f in zip(ranges, first, strict=True))
    return inside, tuple(slice(a, b) for a, b in ranges)


def _combined(combine: Callable[..., Any], arrays: list[Array], out: Array) -> Part:
    if len(arrays) == 1:
        return [(np.copyto, (out, arrays[0]))]
    calls: Part = [(combine, (arrays[0], arrays[1], out))]
    return calls + [(combine, (out, a, out)) for a in arrays[2:]]


def _scale(x: tuple[int, ...], out: tuple[int, ...], axes: Sequence[Axis], divisor: str) -> Array:
    """[Y…,1]: one over the number of elements that each mean is taken over."""
    counts = np.ones((), np.int64)
    for axis, size, count in zip(axes, x[1:-1], out[1:-1], strict=True):
        at = np.arange(count)[:, None] * axis.stride - axis.begin + np.arange(axis.kernel) * axis.dilation
        real = np.full(count, axis.kernel) if divisor == "full" else ((at >= 0) & (at < size)).sum(axis=1)
        counts = counts[..., None] * real
    return frozen((1 / np.maximum(counts, 1)).astype(np.float32))[..., None]
