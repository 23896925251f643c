"""Direct convolutions as products: padding is skipped where it lies, nothing is copied."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.elements import F32, element_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.depthwise import fits_depthwise, select_depthwise
from irload.plan.backends.llvm.kernels.few_outputs import fits_few_outputs, select_few_outputs
from irload.plan.backends.llvm.kernels.parts import in_parts
from irload.plan.backends.llvm.kernels.product import Product
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.weight_panels import weight_panels
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.kernels.winograd_selection import fits_winograd, select_winograd
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tile import Level, tile_shape
from irload.plan.ir.program import PlanInvalid
from irload.plan.ir.steps import Conv


def select_convolution(step: Conv, selector: Selector) -> list[Launch]:
    """A convolution of any rank, with groups."""
    conv = Windowed.of(step, selector)
    if not selector.bf16 or fits_depthwise(conv) or (selector.target.dots and fits_winograd(conv, selector)):
        return [launch_convolution(conv, selector)]  # Winograd saves four times the products, AVX512_BF16 only twice
    from irload.plan.backends.llvm.kernels.bf16_convolution import bf16_convolution  # with kernels that f32 needs not
    from irload.plan.backends.llvm.kernels.bf16_selection import pays_in_bf16
    from irload.plan.backends.llvm.kernels.bf16_windows import bf16_windows

    if pays_in_bf16(step, selector.target):
        return bf16_convolution(conv, selector)
    return bf16_windows(conv, selector) or [launch_convolution(conv, selector)]


def launch_convolution(conv: Windowed, selector: Selector) -> Launch:
    """The kernel for a convolution."""
    if fits_depthwise(conv):
        return select_depthwise(conv, selector)
    if fits_winograd(conv, selector):
        return select_winograd(conv, selector)
    if fits_few_outputs(conv, selector.target):
        return select_few_outputs(conv, selector)
    return _direct(conv, selector)


def _direct(conv: Windowed, selector: Selector) -> Launch:
    data, out = conv.data, conv.out
    if element_of(data) != F32:
        raise PlanInvalid("a convolution in f32 reads data stored in bf16")
    groups, channels, depth, *_ = conv.shape
    planar = data.shape[1] > 1 and data.strides[1] != 4
    taps = [
        Level(k, dilation * stride, None, step_, dilation, begin, size)
        for k, dilation, stride, step_, begin, size in zip(
            conv.kernel, conv.dilations, data.strides[2:], conv.strides, conv.begin, conv.sizes, strict=True
        )
    ]
    padded = [axis.whole is None for axis in conv.axes()[3 - len(taps) :]]
    tensors = [out, *(np.broadcast_to(a, out.shape) for a in conv.operands)]
    axes = [Axis(out.shape[0], (data.strides[0], *(t.strides[0] for t in tensors)))]
    axes.append(Axis(groups, (depth * data.strides[1], *(channels * t.strides[1] for t in tensors)), fixed=groups > 1))
    for k, tap in enumerate(taps):
        strides = (tap.step * data.strides[2 + k], *(t.strides[2 + k] for t in tensors))
        axes.append(Axis(out.shape[2 + k], strides, fixed=padded[k]))
    kept = merged(axes) or [Axis(1, (0,) * (1 + len(tensors)))]
    if groups > 1 and kept[-1] is axes[1]:
        kept.append(Axis(1, (0,) * (1 + len(tensors))))  # columns of a tile share their weights
    positions = iter(k for k, axis in enumerate(kept) if axis.fixed and axis is not axes[1])
    levels = [_linked(tap, next(positions), len(kept)) if padded[k] else tap for k, tap in enumerate(taps)]
    sums = Level(depth, data.strides[1])
    order = [sums, *levels] if planar else [*levels, sums]
    order = [level for level in order if level.count > 1 or level.axis is not None] or [sums]
    length = depth * prod(conv.kernel)
    lanes = selector.target.lanes
    rows, vectors = tile_shape(selector.target, kept[-1].size, channels, pitch=kept[-1].strides[0])
    per_group = -(-channels // (vectors * lanes)) * vectors * lanes * length * 4
    start = -sum(tap.begin * stride for tap, stride in zip(taps, data.strides[2:], strict=True))

    def access(k: int, tensor: Array | None, begin: int = 0) -> Access:
        outer = tuple(axis.strides[k] for axis in kept[:-1])
        channel, element = (0, F32) if tensor is None else (tensor.strides[1], element_of(tensor))
        return Access(outer, kept[-1].strides[k], channel, begin, element)

    product = Product(
        lanes,
        tuple(axis.size for axis in kept[:-1]),
        kept[-1].size,
        channels,
        tuple(order),
        access(0, None, start),
        access(1, out),
        tuple(access(2 + k, t) for k, t in enumerate(tensors[1:])),
        conv.epilogue,
        rows,
        vectors,
        vectors,
        tuple(per_group if axis is axes[1] and groups > 1 else 0 for axis in kept[:-1]),
        cached=selector.target.cached,
    )
    product = shared(in_parts(product), selector.threads, data.nbytes, 4 * prod(conv.shape))

    def pack(weights: Array) -> Array:
        moved = weights if planar else np.moveaxis(weights, 2, -1)
        return weight_panels(moved, selector.target, vectors, selector.threads)

    packed = conv.packed(selector, ("panels", planar, lanes, vectors), pack, stored=True)
    return selector.launch(product, [data, packed, out, *conv.operands])


def _linked(tap: Level, axis: int, count: int) -> Level:
    """The taps of an axis along which there is padding."""
    return replace(tap, axis=-1 if axis == count - 1 else axis)
