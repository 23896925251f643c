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
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.convolution import launch_convolution
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import IDENTITY, ConvTranspose
from irload.record import record

MOST_PHASES = 64
"""Phases of a step, of which each is a kernel; with more of them each has little to do."""


@record()
class Phase:
    """The outputs first, first + stride, … of one axis, as windows of stride 1 over `size` elements.

    `taps` are those of the weights in the order in which they read the data.
    """

    outputs: slice
    taps: tuple[int, ...]
    dilation: int
    begin: int
    size: int


def phases(count: int, size: int, kernel: int, stride: int, dilation: int, begin: int) -> list[Phase]:
    """The phases of an axis of `count` outputs and `size` elements of data."""
    found: list[Phase] = []
    for first in range(min(stride, count)):
        taps = [k for k in reversed(range(kernel)) if (first + begin - k * dilation) % stride == 0]
        outputs = slice(first, None, stride)
        if taps:
            start = (first + begin - taps[0] * dilation) // stride
            found.append(Phase(outputs, tuple(taps), dilation // gcd(stride, dilation), -start, size))
        else:  # a tap that lies nowhere in the data: zeros
            found.append(Phase(outputs, (0,), 1, 0, 0))
    return found


def count_phases(step: ConvTranspose) -> int:
    """The phases of all axes together."""
    return prod(min(stride, count) for stride, count in zip(step.strides, step.output.shape[2:], strict=True))


def select_conv_transpose(step: ConvTranspose, selector: Selector) -> list[Launch]:
    """The convolutions of all phases."""
    convs = _convolutions(step, selector)
    if selector.bf16:
        from irload.plan.backends.llvm.kernels.bf16_conv_transpose import bf16_conv_transpose  # which f32 needs not
        from irload.plan.backends.llvm.kernels.bf16_selection import pays_in_bf16

        if pays_in_bf16(step, selector.target):
            return bf16_conv_transpose(convs, selector)
    return [launch_convolution(conv, selector) for conv in convs]


def _convolutions(step: ConvTranspose, selector: Selector) -> list[Windowed]:
    data, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    groups, depth, channels, *kernel = step.inputs[1].shape
    one = (1,) * len(kernel)
    convs: list[Windowed] = []
    geometry = zip(out.shape[2:], data.shape[2:], kernel, step.strides, step.dilations, step.begin, strict=True)
    for parts in product(*(phases(*numbers) for numbers in geometry)):
        taps = tuple(part.taps for part in parts)
        conv = Windowed(
            data,
            out[(slice(None), slice(None), *(part.outputs for part in parts))],
            [],
            IDENTITY,
            step.inputs[1],
            (groups, channels, depth, *map(len, taps)),
            tuple(part.size for part in parts),
            one,
            tuple(part.dilation for part in parts),
            tuple(part.begin for part in parts),
            lambda weights, taps=taps: _picked(weights, taps),
            taps,
        )
        convs.append(conv)
    return convs


def _picked(weights: Array, taps: Sequence[Sequence[int]]) -> Array:
    """Weights [G,C/G,O/G,K…] of these taps of each axis, as [G,O/G,C/G,K…]."""
    return weights.swapaxes(1, 2)[np.ix_(*map(range, (weights.shape[0], weights.shape[2], weights.shape[1])), *taps)]
