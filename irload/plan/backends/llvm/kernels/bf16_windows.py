"""Convolutions of few channels in bf16: a row of a tile is a window along columns, channels included."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.elements import F32, SIZES, element_of
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.bf16_convolution import spatial_axes
from irload.plan.backends.llvm.kernels.bf16_selection import bf16_product, channels_of, tile_width
from irload.plan.backends.llvm.kernels.block_product import Chunks
from irload.plan.backends.llvm.kernels.image_to_bf16 import ImageToBf16
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.to_bf16 import Strided
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial, each_tap

GAIN = 0.75
"""The share of the cycles of f32, were it as fast as with many channels, that is worth it: with few it takes double."""


def bf16_windows(conv: Windowed, selector: Selector) -> list[Launch] | None:
    """Such a convolution, None where it would not be faster."""
    out = conv.out
    groups, channels, depth, *kernel = conv.shape
    if groups > 1 or conv.dilations[-1] != 1 or not _reads_lines(conv.data, depth):
        return None
    members = _members(depth, kernel[-1])
    if members > selector.target.lanes:
        return None
    spatial = spatial_axes(conv)
    *lines, columns = [_padded(axis) for axis in spatial]
    batch = Strided(conv.data.shape[0], conv.data.strides[0])
    copy = ImageToBf16(batch, tuple(lines), columns, depth, conv.data.strides[1], members)
    sample, *steps = copy.strides
    tensors = [out, *(np.broadcast_to(a, out.shape) for a in conv.operands)]
    axes = [Axis(out.shape[0], (0, sample, *(t.strides[0] for t in tensors)))]
    for k, (axis, step) in enumerate(zip(spatial, steps, strict=True)):
        axes.append(Axis(axis.count, (0, axis.step * step, *(t.strides[2 + k] for t in tensors))))
    along = [[k * a.dilation * step for k in range(a.taps)] for a, step in zip(spatial[:-1], steps[:-1], strict=True)]
    taps = each_tap(along)
    chunks = Chunks.in_place(members * kernel[-1], tiled=selector.target.tiles)
    width = tile_width(channels)
    made = bf16_product(conv.epilogue, selector.target, axes, chunks, channels, taps, width, channels_of(tensors, 1))
    rate = 1 if selector.target.dots else 2  # multiply-adds of vectors in a cycle: Zen 4 has 1
    plain = out.size * (depth * prod(kernel) / rate + expression_cycles(conv.epilogue)) / selector.target.lanes
    if copy.cycles + made.cycles > plain / GAIN:
        return None
    made = shared(made, selector.threads, copy.nbytes, 0)

    def pack(weights: Array) -> Array:
        turned = np.moveaxis(weights[0], 1, -1)  # [O, K…, C]
        filled = np.zeros((*turned.shape[:-1], members), turned.dtype)
        filled[..., :depth] = turned
        return tile_panels(filled.reshape(1, channels, len(taps), -1), width, overlap=chunks.overlap)

    packed = conv.packed(selector, ("windows", members, width, chunks.overlap), pack)
    place = selector.temporary(copy.nbytes)
    return [selector.launch(copy, [conv.data, place]), selector.launch(made, [place, packed, *tensors])]


def _reads_lines(data: Array, depth: int) -> bool:
    """True where the data are in f32, and lines of one channel, or of all, lie in one run of memory."""
    steps = (data.strides[1], data.strides[-1])
    return element_of(data) == F32 and (steps[1] == SIZES[F32] or steps == (SIZES[F32], SIZES[F32] * depth))


def _members(depth: int, taps: int) -> int:
    """What a column of the copy has in place of `depth` channels: a power of 2, and pairs in each window."""
    members = 1 << (depth - 1).bit_length()
    return members if members * taps % 2 == 0 else 2


def _padded(axis: Spatial) -> Spatial:
    """All positions that an axis reads, as outputs of one tap."""
    length = (axis.count - 1) * axis.step + (axis.taps - 1) * axis.dilation + 1
    return Spatial(axis.size, axis.stride, length, begin=axis.begin)
