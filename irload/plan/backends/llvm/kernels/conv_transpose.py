"""Transposed convolutions as one convolution of stride 1 per phase: outputs that are a stride apart use the same taps.

Element i of the data times tap k is added to output o = i·stride + k·dilation − begin. So output o uses the taps k for
which o + begin − k·dilation is a multiple of the stride, and the position in the data decreases as k increases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import gcd, prod

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.dot import FMA
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.convolution import contracted, convolution_in_f32
from irload.plan.backends.llvm.kernels.precision import chosen_dot
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.sized_arrays import spread
from irload.plan.ir.steps import ConvTransposeStep
from irload.record import record


@record()
class StridePhase:
    """A phase of one axis: the outputs first, first + stride, …, as windows of stride 1.

    `taps`: the indices of the phase's taps in the weights, in the order of the data that they read.
    """

    outputs: slice
    taps: tuple[int, ...]
    window: WindowAxis


def phases(count: int, size: int, kernel: int, stride: int, dilation: int, begin: int) -> list[StridePhase]:
    """The phases of an axis of `count` outputs and `size` elements of data."""
    result: list[StridePhase] = []
    for first in range(min(stride, count)):
        taps = [k for k in reversed(range(kernel)) if (first + begin - k * dilation) % stride == 0]
        outputs, windows = slice(first, None, stride), -((first - count) // stride)
        if taps:
            start = (first + begin - taps[0] * dilation) // stride
            window = WindowAxis(size, windows, len(taps), 1, dilation // gcd(stride, dilation), -start)
        else:  # no tap contributes to these outputs: one tap on empty data, so that they are 0
            taps, window = [0], WindowAxis(0, windows)
        result.append(StridePhase(outputs, tuple(taps), window))
    return result


def count_phases(step: ConvTransposeStep) -> int:
    """The number of phases, of all axes together."""
    return prod(min(stride, count) for stride, count in zip(step.strides, step.output.shape[2:], strict=True))


def select_conv_transpose(step: ConvTransposeStep, selector: Selector) -> list[Launch]:
    """The convolutions of all phases."""
    convs, dot = _convolutions(step, selector), chosen_dot(step, selector)
    if dot.tiled:
        from irload.plan.backends.llvm.kernels.tile_maps import convolutions_by_tiles  # not needed by f32

        return convolutions_by_tiles(convs, dot, selector)
    kernels = (convolution_in_f32(conv, selector) if dot is FMA else contracted(conv, dot, selector) for conv in convs)
    return [launch for each in kernels for launch in each]


def _convolutions(step: ConvTransposeStep, selector: Selector) -> list[ConvProblem]:
    data, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    operands = [spread(selector.stored(v), out.shape) for v in step.operands]
    groups, depth, channels, *kernel = step.inputs[1].shape
    convs: list[ConvProblem] = []
    geometry = zip(out.shape[2:], data.shape[2:], kernel, step.strides, step.dilations, step.begin, strict=True)
    for parts in product(*(phases(*numbers) for numbers in geometry)):
        taps = tuple(part.taps for part in parts)
        index = (slice(None), slice(None), *(part.outputs for part in parts))
        arrays = data, out[index], [operand[index] for operand in operands]
        shape, windows = (groups, channels, depth, *map(len, taps)), tuple(part.window for part in parts)
        pick = partial(_picked, taps=taps)
        convs.append(ConvProblem(*arrays, step.epilogue, step.inputs[1], shape, windows, pick, taps))
    return convs


def _picked(weights: Array, taps: Sequence[Sequence[int]]) -> Array:
    """The given taps of each axis of weights [G,C/G,O/G,K…], as [G,O/G,C/G,K…]."""
    along = [slice(k[0], k[-1] - 1 if k[-1] else None, k[1] - k[0] if len(k) > 1 else -1) for k in taps]
    return weights.swapaxes(1, 2)[(slice(None),) * 3 + tuple(along)]
