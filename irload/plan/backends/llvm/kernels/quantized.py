"""Convolutions and matmuls of u8 data and i8 weights, with exact sums in i32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.depthwise import fits_depthwise, select_depthwise
from irload.plan.backends.llvm.kernels.maps import maps_in_place, padded_maps
from irload.plan.backends.llvm.kernels.precision import integer_dot
from irload.plan.backends.llvm.kernels.windowed_contraction import contraction_of, launched
from irload.plan.backends.llvm.kernels.winograd_selection import fits_winograd, select_winograd
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.weight_memory import aligned_copy
from irload.plan.ir.expression import ADD
from irload.plan.ir.program import Value
from irload.plan.ir.steps import Integers


def integer_convolution(conv: ConvProblem, integers: Integers, selector: Selector) -> list[Launch]:
    """A convolution of bytes: depthwise in f32, which is exact, otherwise a contraction.

    Without VNNI, adding four products takes two instructions, and Winograd's algorithm in f32 is faster: 64 channels
    of 56 × 56 take 0.75 ms, against 1.24 ms by vpmaddubsw (Zen 3). Its error is far below a quantum of the result.
    """
    if fits_depthwise(conv):
        return select_depthwise(conv, selector, integers.zero_point)
    if not selector.target.vnni and fits_winograd(conv, selector):
        return [select_winograd(conv, selector, integers.zero_point)]
    dot, padding = integer_dot(integers, conv.data, selector.target), integers.zero_point
    is_padded = any(window.is_padded for window in conv.windows)
    maps = None if is_padded and padding else maps_in_place(conv, dot, conv.shape[2])
    if maps is None:
        maps = padded_maps(conv, dot, padding if is_padded else None, selector)
    if padding:
        sums = compensation(conv.weights, padding, tuple(range(2, len(conv.shape))), selector).reshape(
            -1, *(1,) * len(conv.windows)
        )
        conv = replace(conv, operands=[sums, *conv.operands], epilogue=ADD.then(conv.epilogue, 0))
    return launched(conv, maps, contraction_of(conv, maps, dot, selector), selector)


def compensation(weights: Value, zero_point: int, axes: tuple[int, ...], selector: Selector) -> Array:
    """−zero point · Σ weights over `axes`, one number per channel.

    The epilogue adds it to sums of products of data that include the zero point.
    """

    def summed(array: Array) -> Array:
        return aligned_copy(-zero_point * array.sum(axes, np.int64).reshape(-1))

    return selector.packed(weights, ("compensation", zero_point, axes), summed)
