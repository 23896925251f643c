"""Pooling on channels-last data: shifted maxima or sums over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.plan.kernels.calls import Part, Scratch, maximum
from irload.plan.kernels.tiles import ELEMENTS, cut


def pool(
    kind: str,
    x: Array,
    out: Array,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    divisor: str,
    scratch: Scratch,
    threads: int,
) -> list[list[Part]]:
    """X [N,H,W,C] → out [N,OH,OW,C]. Rows are combined first, then columns, as windows are separable."""
    n, height, width, channels = x.shape
    oh, ow = out.shape[1:3]
    combine = maximum if kind == "max" else np.add
    fill = -np.inf if kind == "max" else 0
    scale = _scale(x.shape, out.shape, kernel, strides, pads, divisor) if kind == "mean" else None
    parts: list[Part] = []
    for start, stop in cut(oh, threads if x.size >= ELEMENTS else 1):
        part: Part = []
        rows = stop - start
        first = start * strides[0] - pads[0]
        tall = (rows - 1) * strides[0] + kernel[0]
        band = scratch.take((tall, max(width + pads[2] + pads[3], (ow - 1) * strides[1] + kernel[1]), channels))
        joined = scratch.take((rows, band.shape[1], channels))
        above, count = max(-first, 0), max(0, min(height, first + tall) - max(first, 0))
        for sample in range(n):
            for border in (
                *(band[:above], band[above + count :]),
                *(band[:, : pads[2]], band[:, pads[2] + width :]),
            ):
                if border.size:
                    part.append((border.fill, (fill,)))
            source = x[sample, max(first, 0) : max(first, 0) + count]
            part.append((np.copyto, (band[above : above + count, pads[2] : pads[2] + width], source)))
            shifted = [band[i : i + (rows - 1) * strides[0] + 1 : strides[0]] for i in range(kernel[0])]
            part += _combined(combine, shifted, joined)
            across = [joined[:, j : j + (ow - 1) * strides[1] + 1 : strides[1]] for j in range(kernel[1])]
            target = out[sample, start:stop]
            part += _combined(combine, across, target)
            if scale is not None:
                part.append((np.multiply, (target, scale[start:stop], target)))
        parts.append(part)
    return [parts]


def _combined(combine: Callable[..., Any], arrays: list[Array], out: Array) -> Part:
    if len(arrays) == 1:
        return [(np.copyto, (out, arrays[0]))]
    calls: Part = [(combine, (arrays[0], arrays[1], out))]
    return calls + [(combine, (out, a, out)) for a in arrays[2:]]


def _scale(
    x: tuple[int, ...],
    out: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    divisor: str,
) -> Array:
    """[OH,OW,1]: one over the number of elements that each mean is taken over."""
    counts: list[Array] = []
    for k in range(2):
        start = np.arange(out[k + 1]) * strides[k] - pads[2 * k]
        real = np.minimum(start + kernel[k], x[k + 1]) - np.maximum(start, 0)
        counts.append(np.full_like(real, kernel[k]) if divisor == "full" else np.maximum(real, 1))
    return (1 / (counts[0][:, None, None] * counts[1][None, :, None])).astype(np.float32)
