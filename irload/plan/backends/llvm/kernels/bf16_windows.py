"""Convolutions of few channels in bf16: a tile sums over whole windows along columns, channels included."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.elements import F32, element_of
from irload.plan.backends.llvm.expressions import expression_cycles
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.bf16_convolution import spatial_axes, tap_offsets
from irload.plan.backends.llvm.kernels.bf16_selection import bf16_product, channels_of, tile_width
from irload.plan.backends.llvm.kernels.block_product import Chunks
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.to_bf16 import Strided
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.kernels.windows_to_bf16 import Runs, WindowsToBf16
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector

GAIN = 0.75
"""The share of the cycles of f32, were it as fast as with many channels, that is worth it: with few it takes double."""


def bf16_windows(conv: Windowed, selector: Selector) -> list[Launch] | None:
    """Such a convolution, None where it would not be faster."""
    data, out = conv.data, conv.out
    groups, channels, depth, *kernel = conv.shape
    runs = _runs(data, depth, kernel[-1]) if element_of(data) == F32 else None
    if groups > 1 or conv.dilations[-1] != 1 or runs is None or not runs.fit:
        return None
    *outer, columns = spatial_axes(conv)
    copy = WindowsToBf16(Strided(data.shape[0], data.strides[0]), tuple(outer), columns, runs)
    batch, *rest, column = copy.strides
    positions = rest[len(outer) :]
    taps = tap_offsets(outer, rest[: len(outer)], positions)
    width = tile_width(channels)
    operands = [np.broadcast_to(a, out.shape) for a in conv.operands]
    tensors = [out, *operands]
    axes = [Axis(out.shape[0], (0, batch, *(t.strides[0] for t in tensors)))]
    for k, stride in enumerate([*positions, column]):
        axes.append(Axis(out.shape[2 + k], (0, stride, *(t.strides[2 + k] for t in tensors))))
    chunks = Chunks.copied(runs.count * runs.length, 0)
    made = bf16_product(conv.epilogue, selector.target, axes, chunks, channels, taps, width, channels_of(tensors, 1))
    rate = 1 if selector.target.dots else 2  # multiply-adds of vectors in a cycle: Zen 4 has 1
    plain = out.size * (depth * prod(kernel) / rate + expression_cycles(conv.epilogue)) / selector.target.lanes
    if copy.cycles + made.cycles > plain / GAIN:
        return None
    made = shared(made, selector.threads, copy.nbytes, 0)

    def pack(weights: Array) -> Array:
        turned = np.moveaxis(weights[0], 1, -2 if runs.count > 1 else -1)  # [O, K…, C, K] or [O, K…, K, C]
        return tile_panels(turned.reshape(1, channels, len(taps), -1), width)

    packed = conv.packed(selector, ("windows", runs.count > 1, width), pack)
    place = selector.temporary(copy.nbytes)
    return [selector.launch(copy, [data, place]), selector.launch(made, [place, packed, out, *operands])]


def _runs(data: Array, depth: int, taps: int) -> Runs | None:
    """What lies side by side in a window; None where that is less than a line of a channel, or of all channels."""
    if data.strides[-1] == 4:
        return Runs(depth, taps, data.strides[1], 1)
    if data.strides[1] == 4 and data.strides[-1] == 4 * depth:
        return Runs(1, taps * depth, 0, depth)
    return None
