"""Decides whether a convolution uses Winograd's algorithm, and selects its blocking."""

from __future__ import annotations

import numpy as np

from irload.core.size import fixed, is_size
from irload.core.tensor import Array
from irload.plan.backends.llvm import tuning
from irload.plan.backends.llvm.elements import elements_of
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.loops import tail_key
from irload.plan.backends.llvm.kernels.winograd import Winograd, WinogradProducts, count_tiles, filled
from irload.plan.backends.llvm.kernels.winograd_transforms import winograd_weights
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.tile import tile_shape


def fits_winograd(conv: ConvProblem, selector: Selector) -> bool:
    """True if the algorithm applies, is precise enough and is faster than the direct convolution."""
    groups, channels, depth, *kernel = conv.shape
    if groups > 1 or kernel != [3, 3] or conv.data.strides[1] != conv.data.itemsize:
        return False
    if not conv.weights.is_constant or selector.precise or min(channels, depth) < tuning.WINOGRAD_CHANNELS:
        return False
    if any(w.stride != 1 or w.dilation != 1 for w in conv.windows):
        return False
    batch, _, height, width = conv.out.shape
    if height < tuning.WINOGRAD_MAP or width < tuning.WINOGRAD_MAP:
        return False
    tiles = count_tiles(batch, height, width)
    is_filled = batch * height * width >= tuning.WINOGRAD_FILLED * tiles
    return is_filled and (selector.threads == 1 or tiles >= tuning.FEW_WINOGRAD_TILES * selector.threads)


def select_winograd(conv: ConvProblem, selector: Selector, zero_point: int = 0) -> Launch:
    """The kernel of a convolution that `fits_winograd`."""
    data, out = conv.data, conv.out
    _, channels, depth, *_ = conv.shape
    lanes = selector.target.lanes
    n, _, height, width = out.shape
    total = count_tiles(n, height, width)
    streamed = 36 * 4 * channels * depth > tuning.LARGE_WINOGRAD_WEIGHTS
    most = tuning.MORE_WINOGRAD_TILES if streamed else tuning.WINOGRAD_TILES
    blocks = -(-total // most)
    blocks = -(-blocks // selector.threads) * selector.threads
    rows, vectors = tile_shape(
        selector.target, fixed(min(tuning.WINOGRAD_ROWS, total)), channels, widest=tuning.WINOGRAD_PANEL
    )
    rows = fixed(min(tuning.MORE_WINOGRAD_ROWS, total)) if vectors == 1 else rows
    tiles = -(-total // blocks)
    if not is_size(tiles):  # fewer rows if register tiles would be too empty
        lower = range(rows, rows // 2, -1)
        rows = next((n for n in lower if filled(tiles, n) <= tiles * tuning.WINOGRAD_EMPTY), rows)
    tiles = filled(tiles, rows)
    together = 1 if streamed and tiles <= rows else 2
    (down, across), tensors = conv.windows, (data, *conv.tensors)
    maps = (down.size, across.size), (height, width), (down.begin, across.begin)
    types = tuple(t.strides for t in tensors), elements_of((data, out, *conv.operands))
    known = tail_key(depth, lanes), tail_key(channels, lanes)
    products = WinogradProducts(lanes, depth, channels, known, rows, vectors, together)
    kernel = Winograd(products, n, *maps, *types, conv.epilogue, tiles, zero_point)

    def pack(weights: Array) -> Array:
        weights = weights.astype(np.float32) if weights.dtype == np.int8 else weights
        return winograd_weights(weights[0], selector.target, vectors, selector.threads)

    packed = conv.packed(selector, ("winograd", lanes, vectors), pack, stored=True)
    return selector.launch(kernel, [data, packed, out, *conv.operands])
