"""Convolutions of few channels in bf16, for example of RGB images.

With 3 channels, words and tiles would be mostly padding. The data are therefore copied, so that the columns and
channels of a window are one contiguous run, over which the contraction sums.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from irload.core.size import hint
from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.choosing import with_numbers
from irload.plan.backends.llvm.dot import FMA, Dot, dots
from irload.plan.backends.llvm.elements import BF16, F32, SIZES, element_of
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.maps import Maps, launch_copy
from irload.plan.backends.llvm.kernels.reorder import Reorder
from irload.plan.backends.llvm.kernels.windowed_contraction import contraction_of, launched
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tuning import FEW_CHANNELS_SHARE


def few_channels(conv: ConvProblem, selector: Selector) -> list[Launch] | None:
    """The kernels of a convolution, None if f32 is faster."""
    target = selector.target
    dot = dots(target)[BF16]
    groups, _, depth, *kernel = conv.shape
    if groups > 1 or conv.windows[-1].dilation != 1 or not _reads_lines(conv.data, depth):
        return None
    members = 1 << (depth - 1).bit_length()  # per column of the copy: a power of 2, with whole words in each window
    members = members if members * kernel[-1] % 2 == 0 else 2
    if members > target.lanes:
        return None
    copy = _copy(conv, members)
    maps = _maps(conv, copy, dot)
    product = contraction_of(conv, maps, dot, selector)
    rate = FMA.rate if dot.tiled else 1  # Zen 4 starts one FMA of 512 bits per cycle
    plain = hint(conv.out.size) * (depth * prod(kernel) / rate + expression_cycles(conv.epilogue)) / target.lanes
    if sum(with_numbers(each).cycles for each in (copy, product)) > plain / FEW_CHANNELS_SHARE:
        return None
    return launched(conv, launch_copy(conv, copy, maps, selector), product, selector)


def _copy(conv: ConvProblem, members: int) -> Reorder:
    """A copy of all positions that windows read, including padding."""
    data, depth = conv.data, conv.shape[2]
    spatial = tuple(
        CopiedAxis(WindowAxis(w.size, w.reach, begin=w.begin), stride)
        for w, stride in zip(conv.windows, data.strides[2:], strict=True)
    )
    batch = Axis(data.shape[0], (data.strides[0],))
    return Reorder((batch,), depth, data.strides[1], (), spatial, members=members)


def _maps(conv: ConvProblem, copy: Reorder, dot: Dot) -> Maps:
    """The maps in the copy. A window along columns is the depth of a sum, so there is one tap along columns."""
    *lines, columns = (
        replace(w, size=axis.length, begin=0) for w, axis in zip(conv.windows, copy.spatial, strict=True)
    )
    length, depth = copy.members * columns.kernel, conv.shape[2]

    def arrange(weights: Array) -> Array:
        """[1, O, C, K…] → [1, O, lines of taps…, members of a window]."""
        moved = np.moveaxis(weights, 2, -1)
        padded = np.zeros((*moved.shape[:-1], copy.members), moved.dtype)
        padded[..., :depth] = moved
        return padded.reshape(*moved.shape[:-2], length)

    steps = copy.strides[-len(copy.spatial) :]
    windows = (*lines, replace(columns, kernel=1))
    chunks = Chunks.in_place(length, SIZES[dot.a], dot)
    maps = Maps(conv.data, copy.strides[0], 0, steps, windows, chunks, copy.nbytes)
    return replace(maps, contiguous_windows=True, arrange=arrange, key=copy.members)


def _reads_lines(data: Array, depth: int) -> bool:
    """True if the data are f32, and lines of one channel, or of all channels, are contiguous."""
    steps = (data.strides[1], data.strides[-1])
    return element_of(data) == F32 and (steps[1] == SIZES[F32] or steps == (SIZES[F32], SIZES[F32] * depth))
