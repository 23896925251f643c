"""Which convolutions and matmuls are worth computing in bf16, and the kernel of their product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, merged
from irload.plan.backends.llvm.elements import BF16, element_of, is_contiguous
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.kernels.bf16_groups import joined, side_by_side
from irload.plan.backends.llvm.kernels.block_product import BlockProduct, Chunks, even_rows, exact_rows
from irload.plan.backends.llvm.kernels.dot_product import DotProduct, dot_shape
from irload.plan.backends.llvm.kernels.tile_product import TileProduct
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import DEPTH, ROWS
from irload.plan.ir.expression import Expression
from irload.plan.ir.steps import Conv, ConvTranspose, MatMul

LEAST_PRODUCTS = 1 << 18
"""Multiply-adds below which copying takes longer than tiles save: 3 µs of AVX-512."""
LEAST_SUMMED, LEAST_MADE = 11, 3
"""Channels of the data and of the result of convolutions, from which tiles are faster.

Of fewer channels of the data tiles sum over windows along columns. 3 × 3 taps from 16 channels to 3 take 0.06 ms where
f32 takes 0.09, from 64 to 2 they take as long, from 64 to 1 longer.
"""
LEAST_DEPTH, LEAST_PAIRS = 8, 1 << 16
"""By AVX512_BF16: the channels of the data, and multiply-adds, from which a fifth of the time is saved (Zen 4)."""


def pays_in_bf16(step: Conv | ConvTranspose | MatMul, target: Target) -> bool:
    """True where bf16 is faster than f32. Never where some outputs see no tap: zeros are no product."""
    return _taps(step) > 0 and _is_faster(step, target)


def _is_faster(step: Conv | ConvTranspose | MatMul, target: Target) -> bool:
    """True where tiles are filled well, or what is copied meets two vectors of weights or more, and there is work."""
    shape, taps = _matrix(step), _taps(step)
    channels, depth = joined(shape, side_by_side(shape, target))[1:]
    products = step.output.size * shape[2] * taps
    if target.tiles and isinstance(step, MatMul):  # whose data are mostly f32, which few columns do not pay to copy
        return depth >= DEPTH // 2 and channels >= ROWS and products >= LEAST_PRODUCTS
    if target.tiles:
        return depth >= LEAST_SUMMED and channels >= LEAST_MADE and products >= LEAST_PRODUCTS
    if isinstance(step, ConvTranspose):  # whose phases, with few taps each, are as fast in f32 (Sapphire Rapids)
        return False
    return depth >= LEAST_DEPTH and -(-channels // ROWS) * taps >= 2 and products >= LEAST_PAIRS


def _matrix(step: Conv | ConvTranspose | MatMul) -> tuple[int, int, int]:
    """The groups of weights, and the channels that each makes and reads."""
    if isinstance(step, MatMul):
        return 1, step.output.shape[-1], step.inputs[0].shape[-2 if step.transpose_a else -1]
    groups, channels, depth = step.inputs[1].shape[:3]
    return (groups, channels, depth) if isinstance(step, Conv) else (groups, depth, channels)


def _taps(step: Conv | ConvTranspose | MatMul) -> int:
    """How many taps an output sums over; none where some outputs of a transposed convolution see none."""
    if isinstance(step, MatMul):
        return 1
    kernel = step.inputs[1].shape[3:]
    if isinstance(step, Conv):
        return prod(kernel)
    seen = all(d == 1 and k >= s for k, s, d in zip(kernel, step.strides, step.dilations, strict=True))
    return prod(kernel) // prod(step.strides) if seen else 0


def tile_width(channels: int) -> int:
    """Tiles of a panel: the same for any number of rows, so that weights are packed once for all shapes."""
    return 1 if channels <= ROWS else 2


def window_width(channels: int, columns: int, lines: int, target: Target) -> int:
    """The same for windows along lines of so many columns: one tile where that makes blocks of four strips pay.

    Such blocks load weights, which takes longer than multiplying by them, for twice as many rows: 3 × 3 taps of 256
    channels at 28 × 28 take 0.56 ms where they took 0.64. Not where strips are full tiles, or blocks would not be.
    """
    rows = even_rows(columns, ROWS)
    strips = lines * -(-columns // rows)
    pays = strips == 3 or (strips % 4 == 0 and rows <= ROWS - 2)
    return 1 if rows <= ROWS // 2 or (pays and target.tiles) else tile_width(channels)


def reads_in_place(data: Array, channel: int, depth: int, target: Target) -> bool:
    """True where a product can read rows of so many channels where they lie."""
    if element_of(data) != BF16 or not is_contiguous(data, channel):
        return False
    return depth % 2 == 0 or (target.tiles and depth >= DEPTH)  # a pair reaches into the next row otherwise


def channels_of(tensors: Sequence[Array], channel: int) -> list[tuple[int, str]]:
    """How channels of tensors lie on this axis: the bytes between them, and the type that they are stored in."""
    return [(tensor.strides[channel], element_of(tensor)) for tensor in tensors]


def bf16_product(
    epilogue: Expression,
    target: Target,
    axes: list[Axis],
    chunks: Chunks,
    channels: int,
    taps: tuple[int, ...],
    width: int,
    results: Sequence[tuple[int, str]],
    *,
    once: bool = False,
) -> BlockProduct:
    """The product over axes with strides of weights, data, output and operands. `results`: how the latter two lie.

    `once`: by tiles, no result is made twice.
    """
    kept = merged(axes)
    if not kept or kept[-1].strides[0]:
        kept.append(Axis(1, (0,) * len(axes[0].strides)))  # columns of a tile share their weights
    *outer, columns = kept

    def access(k: int) -> Access:
        return Access(tuple(axis.strides[k] for axis in outer), columns.strides[k])

    output, *operands = [replace(access(2 + k), channel=c, element=e) for k, (c, e) in enumerate(results)]
    weights = tuple(axis.strides[0] for axis in outer)
    lines = prod(axis.size for axis in outer if not axis.strides[0])
    if target.tiles:
        kind, rows = TileProduct, (exact_rows if once else even_rows)(columns.size, ROWS)
        height = min(4 // width, lines * -(-columns.size // rows))
    else:
        kind = DotProduct
        rows, height = dot_shape(columns.size, lines, width)
    return kind(
        "bf16",
        tuple(axis.size for axis in outer),
        columns.size,
        channels,
        chunks,
        taps,
        access(1),
        output,
        tuple(operands),
        epilogue,
        weights,
        rows,
        height,
        width,
    )
