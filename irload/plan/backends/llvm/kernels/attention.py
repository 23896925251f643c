"""Attention: keys and values are packed, then each block of queries meets all of them in one kernel."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.attend import Attend, pitch
from irload.plan.backends.llvm.kernels.attention_blocks import Matrices
from irload.plan.backends.llvm.kernels.matmul import PANEL
from irload.plan.backends.llvm.kernels.packing import PackPanels
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import tile_shape
from irload.plan.ir.steps import Attention

if TYPE_CHECKING:
    from irload.plan.backends.llvm.kernels.pack_tiles import PackTiles

CACHED = 96 * 1024
"""Bytes of scores that one thread works at in f32."""
LEAST_QUERIES, LEAST_KEYS, LEAST_WIDTH, LEAST_PRODUCTS = 4, 16, 8, 1 << 18
"""Queries, keys, their width, and multiply-adds, below which tiles of AMX save less than a tenth of the time."""


def select_attention(step: Attention, selector: Selector) -> list[Launch]:
    """In bf16 by AMX where that pays, else in f32."""
    q, k, v, *masks = (selector.array(value) for value in step.inputs)
    out = selector.array(step.output)
    *lead, queries, depth = out.shape
    keys, width = k.shape[-2:]
    q = np.broadcast_to(q, (*lead, queries, width))
    mask = np.broadcast_to(masks[0], (*lead, queries, keys)) if masks else None
    tiled = selector.bf16 and selector.target.tiles and pays_in_tiles(step)
    packed_keys, key_strides, key_place = _packed(selector, k.swapaxes(-1, -2), len(lead), tiled=tiled)
    packed_values, value_strides, value_place = _packed(selector, v, len(lead), tiled=tiled)
    described = (
        selector.target.lanes,
        tuple(lead),
        (queries, keys, width, depth),
        Matrices.of(q),
        Matrices.of(out),
        None if mask is None else Matrices.of(mask),
        mask is not None and mask.dtype == np.bool_,
        key_strides,
        value_strides,
        step.scale,
        step.causal,
    )
    if isinstance(packed_keys, PackPanels) and isinstance(packed_values, PackPanels):
        rows, block = blocks(selector.target, q.strides[-2], (queries, keys), prod(lead), selector.threads)
        panels = (packed_keys.panel, packed_values.panel)
        of_keys, of_values = (
            tile_shape(selector.target, rows, columns, panel)[1]
            for columns, panel in zip((keys, depth), panels, strict=True)
        )
        attend = Attend(*described, rows, block, panels, (of_keys, of_values))
    else:
        from irload.plan.backends.llvm.kernels.attend_tiles import AttendTiles, strips

        attend = AttendTiles(*described, *strips(queries, keys, prod(lead), selector.threads))
    return [
        selector.launch(packed_keys, [k, key_place]),
        selector.launch(packed_values, [v, value_place]),
        selector.launch(attend, [q, key_place, value_place, out, *([] if mask is None else [mask])]),
    ]


def pays_in_tiles(step: Attention) -> bool:
    """True where tiles are filled well, and there is work."""
    queries, depth = step.output.shape[-2:]
    keys, width = step.inputs[1].shape[-2:]
    products = step.output.size // depth * keys * (width + depth)
    filled = queries >= LEAST_QUERIES and keys >= LEAST_KEYS and min(width, depth) >= LEAST_WIDTH
    return filled and products >= LEAST_PRODUCTS


def blocks(target: Target, stride: int, shape: tuple[int, int], matrices: int, threads: int) -> tuple[int, int]:
    """The rows of a tile of vectors, and those of a block, such that few rows of the last block are made twice.

    The cache holds the scores of a block, and there are enough blocks for all threads. `stride`: bytes between queries;
    `shape`: how many queries and keys there are in each of the matrices.
    """
    queries, keys = shape
    most, _ = tile_shape(target, queries, keys, PANEL, stride)

    def count(rows: int, tiles: int) -> int:
        return -(-queries // (rows * tiles))

    def cost(found: tuple[int, int]) -> tuple[int, int]:
        rows, tiles = found
        return count(rows, tiles) * tiles * (rows + 1), -tiles

    rows, tiles = min(
        (
            (rows, tiles)
            for rows in range(most // 2 + 1, most + 1)
            for tiles in range(1, min(queries // rows, max(1, CACHED // (rows * pitch(target.lanes, keys)))) + 1)
            if tiles == 1 or matrices * count(rows, tiles) >= 2 * threads
        ),
        key=cost,
    )
    return rows, rows * tiles


def _packed(
    selector: Selector, matrix: Array, rank: int, *, tiled: bool
) -> tuple[PackPanels | PackTiles, tuple[int, ...], Temporary]:
    """How matrices are packed, the bytes between them along all outer axes of the output, and where."""
    *lead, length, columns = matrix.shape
    lanes = selector.target.lanes
    own = tuple(n if stride else 1 for n, stride in zip(lead, matrix.strides, strict=False))
    kept = tuple(k for k, n in enumerate(own) if n > 1)
    matrices = (
        tuple(own[k] for k in kept),
        tuple(matrix.strides[k] for k in kept),
        (length, columns),
        (matrix.strides[-2], matrix.strides[-1]),
    )
    panel = min(PANEL, -(-columns // lanes))
    if tiled:
        from irload.plan.backends.llvm.kernels.pack_tiles import PackTiles

        packing = PackTiles(*matrices, width=1)
    else:
        packing = PackPanels(lanes, *matrices, panel)
    each = packing.nbytes // prod(own)
    strides = tuple(prod(own[k + 1 :]) * each if n > 1 else 0 for k, n in enumerate(own))
    return packing, (*(0,) * (rank - len(lead)), *strides), selector.temporary(packing.nbytes)
