"""Convolutions and matmuls in bf16: which are worth it, and the kernels that compute them.

The data are copied as bf16, with their padding; weights that are not constant are packed before each product.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.block_product import BlockProduct, even_rows
from irload.plan.backends.llvm.kernels.dot_product import DotProduct, dot_shape
from irload.plan.backends.llvm.kernels.pack_tiles import PackTiles
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.tile_product import TileProduct
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, ToBf16
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import DEPTH, ROWS
from irload.plan.ir.steps import Conv, MatMul, WithEpilogue

LEAST_PRODUCTS = 1 << 18
"""Multiply-adds below which copying takes longer than tiles save: 3 µs of AVX-512."""
LEAST_DEPTH, LEAST_PAIRS = 8, 1 << 16
"""By AVX512_BF16: the channels of the data, and multiply-adds, from which a fifth of the time is saved (Zen 4)."""


def pays_in_bf16(step: Conv | MatMul, target: Target) -> bool:
    """True where tiles are filled well, or what is copied meets two vectors of weights or more, and there is work."""
    if isinstance(step, Conv):
        _, channels, depth, *kernel = step.inputs[1].shape
    else:
        channels, depth, kernel = step.output.shape[-1], step.inputs[0].shape[-2 if step.transpose_a else -1], []
    products = step.output.size * depth * prod(kernel)
    if target.tiles:
        return depth >= DEPTH // 2 and channels >= ROWS and products >= LEAST_PRODUCTS
    return depth >= LEAST_DEPTH and -(-channels // ROWS) * prod(kernel) >= 2 and products >= LEAST_PAIRS


def bf16_convolution(step: Conv, selector: Selector) -> list[Launch]:
    """A convolution of any rank, with groups, in bf16."""
    data, out = selector.array(step.inputs[0]), selector.array(step.output)
    operands = operands_of(step, selector, out)
    groups, channels, depth = step.inputs[1].shape[:3]
    spatial = spatial_axes(step, data, out)
    copy = ToBf16(
        (Strided(groups, depth * data.strides[1]),),
        depth,
        data.strides[1],
        (Strided(data.shape[0], data.strides[0]),),
        tuple(spatial),
    )
    group, chunk, batch, *rest = copy.strides
    phases, positions = rest[: len(spatial)], rest[len(spatial) :]
    taps = tap_offsets(spatial, phases, positions)
    width = tile_width(channels)
    matrix = -(-channels // (width * ROWS)) * width * copy.chunks * len(taps) * 1024
    tensors = [out, *operands]
    axes = [
        Axis(groups, (matrix if groups > 1 else 0, group, *(channels * t.strides[1] for t in tensors))),
        Axis(out.shape[0], (0, batch, *(t.strides[0] for t in tensors))),
    ]
    for k, stride in enumerate(positions):
        axes.append(Axis(out.shape[2 + k], (0, stride, *(t.strides[2 + k] for t in tensors))))
    made = bf16_product(step, selector, axes, (depth, chunk), channels, taps, width, [t.strides[1] for t in tensors])
    made = shared(made, selector.threads, copy.nbytes, groups * matrix)

    def pack(weights: Array) -> Array:
        moved = np.moveaxis(weights, 2, -1)
        return tile_panels(moved.reshape(groups, channels, len(taps), depth), width)

    packed = selector.packed(step.inputs[1], ("tiles", width), pack)
    place = selector.temporary(copy.nbytes)
    return [selector.launch(copy, [data, place]), selector.launch(made, [place, packed, out, *operands])]


def bf16_matmul(step: MatMul, selector: Selector) -> list[Launch]:
    """A matmul with leading axes that broadcast, in bf16."""
    a, out = selector.array(step.inputs[0]), selector.array(step.output)
    operands = operands_of(step, selector, out)
    a = a.swapaxes(-1, -2) if step.transpose_a else a
    b = step.inputs[1]
    *batch, m, n = out.shape
    length = a.shape[-1]
    width = tile_width(n)
    matrix = -(-n // (width * ROWS)) * width * -(-length // DEPTH) * 1024
    lead = (*(1,) * (len(batch) - len(b.shape) + 2), *b.shape[:-2])
    spread = [0 if size == 1 else prod(lead[k + 1 :]) * matrix for k, size in enumerate(lead)]
    a = np.broadcast_to(a, (*batch, m, length))
    order = sorted(range(len(batch)), key=lambda k: spread[k] == 0)
    own = sum(stride != 0 for stride in spread)
    held = [Strided(batch[k] if a.strides[k] else 1, a.strides[k]) for k in order]
    rows = Spatial(m, a.strides[-2], m)
    copy = ToBf16(tuple(held[:own]), length, a.strides[-1], tuple(held[own:]), (rows,))
    chunk, row = copy.strides[own], copy.strides[-1]
    lies = [*copy.strides[:own], *copy.strides[own + 1 : -2]]
    tensors = [out, *operands]
    axes = [
        Axis(batch[k], (spread[k], lies[at] if a.strides[k] else 0, *(t.strides[k] for t in tensors)))
        for at, k in enumerate(order)
    ]
    axes.append(Axis(m, (0, row, *(t.strides[-2] for t in tensors))))
    made = bf16_product(step, selector, axes, (length, chunk), n, (0,), width, [t.strides[-1] for t in tensors])
    made = shared(made, selector.threads, copy.nbytes, matrix * prod(lead))
    place = selector.temporary(copy.nbytes)
    launches = [selector.launch(copy, [a, place])]
    packed: Array | Temporary
    if b.is_constant:

        def pack(weights: Array) -> Array:
            moved = weights if step.transpose_b else weights.swapaxes(-1, -2)
            return tile_panels(moved.reshape(-1, n, 1, length), width)

        packed = selector.packed(b, ("tile matmul", step.transpose_b, width), pack)
    else:
        weights = selector.array(b)
        weights = weights.swapaxes(-1, -2) if step.transpose_b else weights
        steps = (weights.strides[-2], weights.strides[-1])
        packing = PackTiles(weights.shape[:-2], weights.strides[:-2], (length, n), steps, width)
        packed = selector.temporary(packing.nbytes)
        launches.append(selector.launch(packing, [weights, packed]))
    return [*launches, selector.launch(made, [place, packed, out, *operands])]


def spatial_axes(step: Conv, data: Array, out: Array) -> list[Spatial]:
    """The spatial axes of a convolution."""
    numbers = zip(
        data.shape[2:],
        data.strides[2:],
        out.shape[2:],
        step.inputs[1].shape[3:],
        step.strides,
        step.dilations,
        step.pads_begin,
        strict=True,
    )
    return [Spatial(*each) for each in numbers]


def tap_offsets(spatial: Sequence[Spatial], phases: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
    """Where each tap reads, by the bytes between phases and between positions of each axis."""
    along = [
        [phase * a + position * b for phase, position in map(axis.tap, range(axis.taps))]
        for axis, a, b in zip(spatial, phases, positions, strict=True)
    ]
    return tuple(map(sum, combinations(*along)))


def operands_of(step: WithEpilogue, selector: Selector, out: Array) -> list[Array]:
    """The operands of the epilogue, in the shape of the output."""
    return [np.broadcast_to(selector.array(v), out.shape) for v in step.operands]


def tile_width(channels: int) -> int:
    """Tiles of a panel: the same for any number of rows, so that weights are packed once for all shapes."""
    return 1 if channels <= ROWS else 2


def bf16_product(
    step: Conv | MatMul,
    selector: Selector,
    axes: list[Axis],
    depth: tuple[int, int],
    channels: int,
    taps: tuple[int, ...],
    width: int,
    channel: list[int],
) -> BlockProduct:
    """The product over axes with strides of weights, copy, output and operands. `channel`: those of the latter two.

    `depth`: the channels of the data, and the bytes between chunks of them.
    """
    kept = merged(axes)
    if not kept or kept[-1].strides[0]:
        kept.append(Axis(1, (0,) * len(axes[0].strides)))  # columns of a tile share their weights
    *outer, columns = kept

    def access(k: int, channel: int = 0) -> Access:
        return Access(tuple(axis.strides[k] for axis in outer), columns.strides[k], channel)

    weights = tuple(axis.strides[0] for axis in outer)
    lines = prod(axis.size for axis in outer if not axis.strides[0])
    if selector.target.tiles:
        kind, rows = TileProduct, even_rows(columns.size, ROWS)
        height = min(4 // width, lines * -(-columns.size // rows))
    else:
        kind = DotProduct
        rows, height = dot_shape(columns.size, lines, width)
    return kind(
        "bf16",
        tuple(axis.size for axis in outer),
        columns.size,
        channels,
        *depth,
        taps,
        access(1),
        access(2, channel[0]),
        tuple(access(3 + k, stride) for k, stride in enumerate(channel[1:])),
        step.epilogue,
        weights,
        rows,
        height,
        width,
    )
