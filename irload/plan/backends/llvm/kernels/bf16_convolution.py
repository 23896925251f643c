"""Convolutions in bf16, of data that are read where they lie, or of a copy with their padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.elements import element_of
from irload.plan.backends.llvm.kernel import Launch, Temporary, address
from irload.plan.backends.llvm.kernels.bf16_groups import block_diagonal, joined, side_by_side
from irload.plan.backends.llvm.kernels.bf16_selection import (
    bf16_product,
    channels_of,
    reads_in_place,
    tile_width,
    window_width,
)
from irload.plan.backends.llvm.kernels.block_product import BlockProduct, Chunks
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, ToBf16
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial, each_tap
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import NBYTES, ROWS
from irload.record import record


def bf16_convolution(conv: Windowed, selector: Selector) -> list[Launch]:
    """A convolution of any rank, with groups, in bf16."""
    ways = [(copy, read, product_of(conv, read, selector.target)) for copy, read in _ways(conv, selector.target)]
    copy, read, made = min(ways, key=lambda way: (way[0].cycles if way[0] else 0) + way[2].cycles)
    if copy is None:
        return [launch_product(conv, read, made, conv.data, selector)]
    place = selector.temporary(copy.nbytes)
    return [selector.launch(copy, [conv.data, place]), launch_product(conv, read, made, place, selector)]


def launch_product(
    conv: Windowed, read: Read, made: BlockProduct, data: Array | Temporary, selector: Selector
) -> Launch:
    """The product of a convolution, shared by threads."""
    together = side_by_side(conv.shape, selector.target)
    groups, channels, depth = joined(conv.shape, together)
    width, taps = made.width, len(read.taps)

    def pack(weights: Array) -> Array:
        moved = block_diagonal(np.moveaxis(weights, 2, -1), together)
        return tile_panels(moved.reshape(groups, channels, taps, depth), width, overlap=read.chunks.overlap)

    packed = conv.packed(selector, ("tiles", width, read.chunks.overlap, together), pack)
    made = shared(made, selector.threads, read.nbytes, made.matrices)
    return selector.launch(made, [data, packed, conv.out, *_operands(conv)])


def product_of(conv: Windowed, read: Read, target: Target) -> BlockProduct:
    """The product of a convolution, by one thread."""
    groups, channels, _ = joined(conv.shape, side_by_side(conv.shape, target))
    tensors = [conv.out, *_operands(conv)]
    strides = [(t.strides[0], channels * t.strides[1], *t.strides[2:]) for t in tensors]
    positions = [
        Axis(size, (step, *(s[2 + k] for s in strides)))
        for k, (size, step) in enumerate(zip(conv.out.shape[2:], read.positions, strict=True))
    ]
    *lines, columns = [1, *(axis.size for axis in merged(positions))]
    width = tile_width(channels)
    if len(read.taps) > 1 and (len(positions) > 1 or columns <= ROWS // 2):  # sequences of any length share weights
        width = window_width(channels, columns, prod(lines), target)
    matrix = -(-channels // (width * ROWS)) * width * read.chunks.count * len(read.taps) * NBYTES
    axes = [
        Axis(groups, (matrix if groups > 1 else 0, read.group, *(s[1] for s in strides))),
        Axis(conv.out.shape[0], (0, read.batch, *(s[0] for s in strides))),
        *(Axis(axis.size, (0, *axis.strides)) for axis in positions),
    ]
    results = channels_of(tensors, 1)
    over = any(address(t) == address(conv.out) for t in conv.operands)
    return bf16_product(conv.epilogue, target, axes, read.chunks, channels, read.taps, width, results, once=over)


def _operands(conv: Windowed) -> list[Array]:
    """The operands of its epilogue, in the shape of the result."""
    return [np.broadcast_to(a, conv.out.shape) for a in conv.operands]


@record()
class Read:
    """How a product reads the data of a convolution: bytes between groups, samples, and outputs of each spatial axis.

    `taps`: bytes from what output 0 reads to each tap; `nbytes`: those of all data.
    """

    chunks: Chunks
    group: int
    batch: int
    positions: tuple[int, ...]
    taps: tuple[int, ...]
    nbytes: int


def read_in_place(conv: Windowed, target: Target) -> Read | None:
    """The data where they lie, None where a copy is needed: for padding, or chunks that are no runs of memory."""
    data, spatial = conv.data, spatial_axes(conv)
    depth = joined(conv.shape, side_by_side(conv.shape, target))[2]
    if any(axis.is_padded for axis in spatial) or not reads_in_place(data, 1, depth, target):
        return None
    along = [[(k * a.dilation - a.begin) * a.stride for k in range(a.taps)] for a in spatial]
    return Read(
        Chunks.in_place(depth, tiled=target.tiles),
        depth * data.strides[1],
        data.strides[0],
        tuple(axis.step * axis.stride for axis in spatial),
        each_tap(along),
        data.nbytes,
    )


def _ways(conv: Windowed, target: Target) -> list[tuple[ToBf16 | None, Read]]:
    """Copies to read the data from, None where they are read where they lie, and how.

    A tile of no more than half its rows takes as long as of half of them. Where lines are as short as that, a copy in
    which each tap along them has its own outputs lets tiles go on from one line to the next.
    """
    spatial = spatial_axes(conv)
    read = read_in_place(conv, target)
    ways: list[tuple[ToBf16 | None, Read]] = [_copied(conv, spatial, target) if read is None else (None, read)]
    if target.tiles and len(spatial) > 1 and spatial[-1].count <= ROWS // 2 and spatial[-2].count > 1:
        ways.append(_copied(conv, [*spatial[:-1], replace(spatial[-1], by_tap=True)], target))
    return ways


def _copied(conv: Windowed, spatial: Sequence[Spatial], target: Target) -> tuple[ToBf16, Read]:
    """A copy with its padding, in which the outputs of each axis are neighbours."""
    copy = copy_of(conv, spatial, target)
    phases, positions = copy.strides[3 : 3 + len(spatial)], copy.strides[3 + len(spatial) :]
    return copy, read_copy(copy, tap_offsets(spatial, phases, positions))


def copy_of(conv: Windowed, spatial: Sequence[Spatial], target: Target) -> ToBf16:
    """A copy of the data: [sample, group, chunk, phases…, positions…, 32]."""
    groups, _, depth = joined(conv.shape, side_by_side(conv.shape, target))
    data = conv.data
    return ToBf16(
        (Strided(data.shape[0], data.strides[0]), Strided(groups, depth * data.strides[1])),
        depth,
        data.strides[1],
        (),
        tuple(spatial),
        element_of(data),
    )


def read_copy(copy: ToBf16, taps: tuple[int, ...]) -> Read:
    """How a product reads such a copy."""
    batch, group, chunk, *_ = copy.strides
    positions = copy.strides[-len(copy.spatial) :]
    return Read(Chunks.copied(copy.depth, chunk), group, batch, positions, taps, copy.nbytes)


def spatial_axes(conv: Windowed) -> list[Spatial]:
    """The spatial axes of a convolution."""
    numbers = zip(
        conv.sizes,
        conv.data.strides[2:],
        conv.out.shape[2:],
        conv.kernel,
        conv.strides,
        conv.dilations,
        conv.begin,
        strict=True,
    )
    return [Spatial(*each) for each in numbers]


def tap_offsets(spatial: Sequence[Spatial], phases: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
    """Where each tap reads, by the bytes between phases and between positions of each axis."""
    along = [
        [phase * a + position * b for phase, position in map(axis.tap, range(axis.taps))]
        for axis, a, b in zip(spatial, phases, positions, strict=True)
    ]
    return each_tap(along)
