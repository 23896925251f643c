"""When convolutions run by Winograd's algorithm, and in which blocks."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.windowed import Windowed
from irload.plan.backends.llvm.kernels.winograd import Winograd, count_tiles
from irload.plan.backends.llvm.kernels.winograd_weights import winograd_weights
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tile import tile_shape

CHANNELS, MAP = 16, 8
"""The fewest channels, and the smallest map, for which it pays (Zen 3)."""

FILLED = 0.5
"""The part of the outputs of all tiles that must lie on the map."""

TILES, MORE_TILES = 24, 64
"""Tiles of a block, whose sums stay in the second level of the cache; and where the weights do not fit the third.

Maps of 28 × 28 are 49 tiles: two blocks of them take half as long again, as each reads all weights.
"""

PANEL = 2
"""Vectors of a panel of weights: those that come from memory take a tenth longer by 4 (Granite Rapids)."""

FEW_TILES = 6
"""Tiles of a block for which reading the weights takes no longer than multiplying by them."""

LARGE_WEIGHTS = 4 << 20
"""Bytes of transformed weights that come from beyond the third level of the cache, or nearly so."""


def fits_winograd(conv: Windowed, selector: Selector) -> bool:
    """True where it is right, allowed and faster than the direct convolution."""
    groups, channels, depth, *_ = conv.shape
    if groups > 1 or conv.kernel != (3, 3) or {*conv.strides, *conv.dilations} != {1} or conv.data.strides[1] != 4:
        return False
    batch, _, height, width = conv.out.shape
    tiles = count_tiles(batch, height, width)
    filled = batch * height * width >= FILLED * 16 * tiles
    large = min(channels, depth) >= CHANNELS and min(height, width) >= MAP
    enough = selector.threads == 1 or tiles >= FEW_TILES * selector.threads
    return large and filled and enough and not selector.precise


def select_winograd(conv: Windowed, selector: Selector) -> Launch:
    """The kernel of a convolution that fits."""
    data, out = conv.data, conv.out
    _, channels, depth, *_ = conv.shape
    lanes = selector.target.lanes
    n, _, height, width = out.shape
    total = count_tiles(n, height, width)
    blocks = -(-total // (MORE_TILES if 36 * 4 * channels * depth > LARGE_WEIGHTS else TILES))
    blocks = -(-blocks // selector.threads) * selector.threads
    tiles = -(-total // blocks)
    rows, vectors = tile_shape(selector.target, tiles, channels, widest=PANEL)
    kernel = Winograd(
        lanes,
        n,
        (conv.sizes[0], conv.sizes[1]),
        (height, width),
        (conv.begin[0], conv.begin[1]),
        depth,
        channels,
        data.strides,
        out.strides,
        tuple(np.broadcast_to(a, out.shape).strides for a in conv.operands),
        conv.epilogue,
        tiles,
        rows,
        vectors,
    )

    def pack(weights: Array) -> Array:
        return winograd_weights(weights[0], selector.target, vectors, selector.threads)

    packed = conv.packed(selector, ("winograd", lanes, vectors), pack, stored=True)
    return selector.launch(kernel, [data, packed, out, *conv.operands])
