"""Transposed convolutions as convolutions: outputs that lie a stride apart see the same taps, each a phase.

Element i of the data meets tap k at output o = i·stride + k·dilation − begin. So an output o takes the taps k for which
o + begin − k·dilation is a multiple of the stride, and reads the data backwards as k grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd, prod

import numpy as np

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.dot import FMA
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.convolution import contracted, convolution_in_f32
from irload.plan.backends.llvm.kernels.precision import chosen_dot
from irload.plan.backends.llvm.kernels.windowed import WindowedKernel
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import IDENTITY, ConvTransposeStep
from irload.record import record


@record()
class StridePhase:
    """The outputs first, first + stride, … of one axis, as windows of stride 1.

    `taps` of the weights are in the order in which they read the data.
    """

    outputs: slice
    taps: tuple[int, ...]
    window: WindowAxis


def phases(count: int, size: int, kernel: int, stride: int, dilation: int, begin: int) -> list[StridePhase]:
    """The phases of an axis of `count` outputs and `size` elements of data."""
    found: list[StridePhase] = []
    for first in range(min(stride, count)):
        taps = [k for k in reversed(range(kernel)) if (first + begin - k * dilation) % stride == 0]
        outputs, windows = slice(first, None, stride), -((first - count) // stride)
        if taps:
            start = (first + begin - taps[0] * dilation) // stride
            window = WindowAxis(size, windows, len(taps), 1, dilation // gcd(stride, dilation), -start)
        else:  # one tap that reads no data: zeros
            taps, window = [0], WindowAxis(0, windows)
        found.append(StridePhase(outputs, tuple(taps), window))
    return found


def count_phases(step: ConvTransposeStep) -> int:
    """The phases of all axes together."""
    return prod(min(stride, count) for stride, count in zip(step.strides, step.output.shape[2:], strict=True))


def select_conv_transpose(step: ConvTransposeStep, selector: Selector) -> list[Launch]:
    """The convolutions of all phases."""
    convs, dot = _convolutions(step, selector), chosen_dot(step, selector)
    if dot.tiled:
        from irload.plan.backends.llvm.kernels.tile_maps import convolutions_by_tiles  # not needed by f32

        return convolutions_by_tiles(convs, dot, selector)
    kernels = (convolution_in_f32(conv, selector) if dot is FMA else contracted(conv, dot, selector) for conv in convs)
    return [launch for each in kernels for launch in each]


def _convolutions(step: ConvTransposeStep, selector: Selector) -> list[WindowedKernel]:
    data, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    groups, depth, channels, *kernel = step.inputs[1].shape
    convs: list[WindowedKernel] = []
    geometry = zip(out.shape[2:], data.shape[2:], kernel, step.strides, step.dilations, step.begin, strict=True)
    for parts in product(*(phases(*numbers) for numbers in geometry)):
        taps = tuple(part.taps for part in parts)
        conv = WindowedKernel(
            data,
            out[(slice(None), slice(None), *(part.outputs for part in parts))],
            [],
            IDENTITY,
            step.inputs[1],
            (groups, channels, depth, *map(len, taps)),
            tuple(part.window for part in parts),
            lambda weights, taps=taps: _picked(weights, taps),
            taps,
            selector.resized,
        )
        convs.append(conv)
    return convs


def _picked(weights: Array, taps: Sequence[Sequence[int]]) -> Array:
    """Weights [G,C/G,O/G,K…] of these taps of each axis, as [G,O/G,C/G,K…]."""
    return weights.swapaxes(1, 2)[np.ix_(*map(range, (weights.shape[0], weights.shape[2], weights.shape[1])), *taps)]
