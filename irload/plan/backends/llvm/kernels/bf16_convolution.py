"""Convolutions in bf16, of data that are read where they lie, or of a copy with their padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.elements import element_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.bf16_selection import (
    bf16_product,
    operands_of,
    reads_in_place,
    tile_width,
    window_width,
)
from irload.plan.backends.llvm.kernels.block_product import Chunks
from irload.plan.backends.llvm.kernels.sharing import shared
from irload.plan.backends.llvm.kernels.to_bf16 import Strided, ToBf16
from irload.plan.backends.llvm.pack import tile_panels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spatial import Spatial
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import ROWS
from irload.plan.ir.steps import Conv
from irload.record import record


def bf16_convolution(step: Conv, selector: Selector) -> list[Launch]:
    """A convolution of any rank, with groups, in bf16."""
    data, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    operands = operands_of(step, selector, out)
    groups, channels, depth = step.inputs[1].shape[:3]
    read = _in_place(step, data, out, selector.target) or _copied(step, data, out)
    width = window_width(channels, out.shape[-1]) if len(read.taps) > 1 else tile_width(channels)
    matrix = -(-channels // (width * ROWS)) * width * read.chunks.count * len(read.taps) * 1024
    tensors = [out, *operands]
    axes = [
        Axis(groups, (matrix if groups > 1 else 0, read.group, *(channels * t.strides[1] for t in tensors))),
        Axis(out.shape[0], (0, read.batch, *(t.strides[0] for t in tensors))),
    ]
    for k, stride in enumerate(read.positions):
        axes.append(Axis(out.shape[2 + k], (0, stride, *(t.strides[2 + k] for t in tensors))))
    made = bf16_product(step, selector.target, axes, read.chunks, channels, read.taps, width, tensors, 1)
    made = shared(made, selector.threads, read.nbytes, groups * matrix)

    def pack(weights: Array) -> Array:
        moved = np.moveaxis(weights, 2, -1)
        moved = moved.reshape(groups, channels, len(read.taps), depth)
        return tile_panels(moved, width, overlap=read.chunks.overlap)

    packed = selector.packed(step.inputs[1], ("tiles", width, read.chunks.overlap), pack)
    if read.copy is None:
        return [selector.launch(made, [data, packed, out, *operands])]
    place = selector.temporary(read.nbytes)
    return [selector.launch(read.copy, [data, place]), selector.launch(made, [place, packed, out, *operands])]


@record()
class _Read:
    """How a product reads the data of a convolution: bytes between groups, samples, and outputs of each spatial axis.

    `taps`: bytes from what output 0 reads to each tap. `copy`: what it reads a copy by, of `nbytes`.
    """

    chunks: Chunks
    group: int
    batch: int
    positions: tuple[int, ...]
    taps: tuple[int, ...]
    nbytes: int
    copy: ToBf16 | None = None


def _in_place(step: Conv, data: Array, out: Array, target: Target) -> _Read | None:
    """The data where they lie, None where a copy is needed: for padding, or chunks that are no runs of memory."""
    depth = step.inputs[1].shape[2]
    spatial = spatial_axes(step, data, out)
    if any(axis.is_padded for axis in spatial) or not reads_in_place(data, 1, depth, target):
        return None
    start = -sum(axis.begin * axis.stride for axis in spatial)
    taps = combinations(*(range(0, a.taps * a.dilation * a.stride, a.dilation * a.stride) for a in spatial))
    return _Read(
        Chunks.in_place(depth, tiled=target.tiles),
        depth * data.strides[1],
        data.strides[0],
        tuple(axis.step * axis.stride for axis in spatial),
        tuple(start + sum(tap) for tap in taps),
        data.nbytes,
    )


def _copied(step: Conv, data: Array, out: Array) -> _Read:
    """A copy with its padding, in which the outputs of each axis are neighbours."""
    groups, _, depth = step.inputs[1].shape[:3]
    spatial = spatial_axes(step, data, out)
    copy = ToBf16(
        (Strided(groups, depth * data.strides[1]),),
        depth,
        data.strides[1],
        (Strided(data.shape[0], data.strides[0]),),
        tuple(spatial),
        element_of(data),
    )
    group, chunk, batch, *rest = copy.strides
    phases, positions = rest[: len(spatial)], rest[len(spatial) :]
    taps = tap_offsets(spatial, phases, positions)
    return _Read(Chunks.copied(depth, chunk), group, batch, tuple(positions), taps, copy.nbytes, copy)


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
