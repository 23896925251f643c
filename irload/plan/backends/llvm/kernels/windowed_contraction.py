"""Convolutions as contractions, for any `Dot`. Axes: samples, groups, and the columns along the spatial axes."""

from __future__ import annotations

from functools import partial
from math import prod

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.computed_weights import packed_in_panels
from irload.plan.backends.llvm.kernels.contraction import build
from irload.plan.backends.llvm.kernels.contraction.grid import Grid
from irload.plan.backends.llvm.kernels.contraction.nest import Contraction
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.groups import block_diagonal, groups_per_tile, joined
from irload.plan.backends.llvm.kernels.maps import Maps
from irload.plan.backends.llvm.kernels.weights import pack_weights
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tiles import ROWS


def contraction_of(conv: ConvProblem, maps: Maps, dot: Dot, selector: Selector) -> Contraction:
    """The contraction of a convolution, for one thread."""
    target = selector.target
    together = groups_per_tile(conv.shape, target) if dot.tiled else 1
    groups, channels, _ = joined(conv.shape, together)
    tensors = conv.tensors
    results = build.ResultTensors.of(tensors, 1, channels, conv.epilogue)
    by_group = (1 if groups > 1 else 0, maps.group, *(channels * t.strides[1] for t in tensors))
    of_groups = Axis(groups, by_group, fixed=groups > 1 and not dot.tiled)
    samples = Axis(conv.out.shape[0], (0, maps.batch, *(t.strides[0] for t in tensors)))
    positions = [
        Axis(window.count, (0, step, *(t.strides[2 + k] for t in tensors)))
        for k, (window, step) in enumerate(zip(maps.windows, maps.steps, strict=True))
    ]
    if dot.tiled:
        width = build.tile_width(channels) if maps.contiguous_windows else _tile_width(channels, maps, positions)
        return build.tile_product(dot, [of_groups, samples, *positions], maps.chunks, maps.taps, results, width)
    resized = selector.resized
    product = partial(build.register_product, ragged=resized, fixed=not resized)
    inside = not any(window.begin or window.is_padded for window in maps.windows)
    if inside and len(merged(positions)) <= 1:
        axes = [samples, of_groups, *positions]
        return product(target, dot, axes, maps.levels(dot), results)
    padded = tuple(w.is_padded for w in maps.windows)
    grid = Grid(maps.windows, padded, maps.strides, tuple(t.strides[2:] for t in tensors))
    columns = Axis(prod(axis.size for axis in positions), positions[-1].strides, fixed=True)
    levels = maps.levels(dot, on_grid=True)
    return product(target, dot, [samples, of_groups, columns], levels, results, grid=grid)


def _tile_width(channels: int, maps: Maps, positions: list[Axis]) -> int:
    """The tiles per panel: one instead of two if this allows blocks of four strips.

    Loading a tile of weights takes longer than multiplying it. Four strips share a load instead of two: 3 × 3 taps of
    256 channels at 28 × 28 take 0.56 ms instead of 0.64. This is not faster if strips are full tiles, or if the last
    block would not be full.
    """
    *lines, columns = [1, *(axis.size for axis in merged(positions))]
    if len(maps.taps) == 1 or (len(positions) == 1 and columns > ROWS // 2):  # sequences of any length share weights
        return build.tile_width(channels)
    rows = build.even_rows(columns, ROWS)
    strips = prod(lines) * -(-columns // rows)
    pays = strips == 3 or (strips % 4 == 0 and rows <= ROWS - 2)
    return 1 if rows <= ROWS // 2 or pays else build.tile_width(channels)


def launched(conv: ConvProblem, maps: Maps, product: Contraction, selector: Selector) -> list[Launch]:
    """The launches of the copy of the data, if any, and of the contraction, divided among threads."""
    dot, taps = product.dot, len(maps.taps)
    together = groups_per_tile(conv.shape, selector.target) if dot.tiled else 1
    groups, channels, _ = joined(conv.shape, together)
    packing = build.packing_of(product, maps.chunks)
    if not dot.tiled and maps.chunks.step is not None:
        taps = 1  # data in place: the words of each tap follow the words of the previous tap

    def arranged(weights: Array) -> Array:
        return weights if maps.planar else maps.arrange(weights)

    def pack(weights: Array) -> Array:
        moved = block_diagonal(arranged(weights), together)
        moved = moved.reshape(groups, channels, *moved.shape[2:])
        return pack_weights(moved, packing, selector.target, selector.threads, taps)

    packs: list[Launch] = []
    if conv.weights.is_constant:
        packed: Array | Temporary = conv.packed(selector, (packing, together, taps, maps.key), pack, stored=True)
    else:
        weights = arranged(conv.computed(selector))
        packed, packs = packed_in_panels(weights, packing, selector, chunked=maps.chunks.step is None)
    product = build.shared(product, selector.threads, maps.nbytes)
    return [*maps.copies, *packs, selector.launch(product, [maps.data, packed, *conv.tensors])]
