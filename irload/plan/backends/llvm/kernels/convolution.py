"""Selects the kernels of a convolution: depthwise, Winograd's algorithm, or a contraction."""

from __future__ import annotations

from math import prod

from irload.plan.backends.llvm.dot import FMA, Dot
from irload.plan.backends.llvm.elements import element_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.depthwise import fits_depthwise, largest_group, select_depthwise
from irload.plan.backends.llvm.kernels.few_outputs import fits_few_outputs, select_few_outputs
from irload.plan.backends.llvm.kernels.maps import is_planar, maps_in_place, padded_maps, unpadded_copy
from irload.plan.backends.llvm.kernels.precision import chosen_dot
from irload.plan.backends.llvm.kernels.windowed_contraction import contraction_of, launched
from irload.plan.backends.llvm.kernels.winograd_selection import fits_winograd, select_winograd
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tuning import PADDED_CHANNELS, PADDED_TAPS, PADDED_WORDS
from irload.plan.ir.steps import ConvStep


def select_convolution(step: ConvStep, selector: Selector) -> list[Launch]:
    """The kernels of a convolution of any rank, with or without groups."""
    conv = ConvProblem.of(step, selector)
    if step.integers is not None:
        from irload.plan.backends.llvm.kernels.quantized import integer_convolution  # not needed by f32

        return integer_convolution(conv, step.integers, selector)
    in_f32 = not selector.bf16 or _has_small_groups(conv, selector)
    if not in_f32 and not selector.target.tiles:
        # AVX512_BF16 halves the time; these kernels save more, Winograd's algorithm 3/4 of the products
        in_f32 = fits_few_outputs(conv, selector) or fits_winograd(conv, selector)
    if in_f32:
        return convolution_in_f32(conv, selector)
    dot = chosen_dot(step, selector)
    if dot is not FMA or not conv.weights.is_constant:
        return contracted(conv, dot, selector)
    from irload.plan.backends.llvm.kernels.few_channels import few_channels

    return few_channels(conv, selector) or convolution_in_f32(conv, selector)


def contracted(conv: ConvProblem, dot: Dot, selector: Selector) -> list[Launch]:
    """The contraction of a convolution. It reads the data in place, or a copy."""
    if dot.tiled:
        from irload.plan.backends.llvm.kernels.tile_maps import best_maps  # not needed by f32

        return launched(conv, *best_maps(conv, dot, selector), selector)
    if any(window.is_padded for window in conv.windows) and _copies_padding(conv, dot, selector.target):
        maps = padded_maps(conv, dot, 0, selector)
    else:
        maps = maps_in_place(conv, dot, conv.shape[2]) or unpadded_copy(conv, selector)
    return launched(conv, maps, contraction_of(conv, maps, dot, selector), selector)


def _copies_padding(conv: ConvProblem, dot: Dot, target: Target) -> bool:
    """True if a copy with padding is faster than selecting the data or zeros for each output and tap.

    Tiles of one vector multiply each selected word once. The copy takes less time than the selection if few channels
    share an address, and many taps read each element.
    """
    _, channels, depth, *_ = conv.shape
    if dot.k == 1 and (depth <= PADDED_CHANNELS or is_planar(conv.data)):
        return True
    if element_of(conv.data) != dot.a or depth % dot.k:
        return False  # the copy neither rounds the data nor fills words
    taps, step = (prod(sizes) for sizes in zip(*((w.kernel, w.stride) for w in conv.windows), strict=True))
    return channels <= target.lanes and dot.words(depth) <= PADDED_WORDS and taps >= PADDED_TAPS * step


def convolution_in_f32(conv: ConvProblem, selector: Selector) -> list[Launch]:
    """The kernel of a convolution in f32."""
    if _has_small_groups(conv, selector):
        return select_depthwise(conv, selector)
    if fits_few_outputs(conv, selector):
        return [select_few_outputs(conv, selector)]
    if fits_winograd(conv, selector):
        return [select_winograd(conv, selector)]
    return contracted(conv, FMA, selector)


def _has_small_groups(conv: ConvProblem, selector: Selector) -> bool:
    """True if the kernel with vectors over the channels of several groups is faster than a contraction.

    For a single group of a few channels, both fill as many lanes, and a contraction is faster: 3 × 3 × 3 taps of 8
    channels at 32³ take 0.7 of the time, and 0.4 in bf16 (Zen 5).
    """
    groups, channels, *_ = conv.shape
    return (groups > 1 or channels == 1) and fits_depthwise(conv, largest_group(selector.target, bf16=selector.bf16))
