"""Packs the weights of convolutions that are computed in each inference, as in StyleGAN or in trackers of objects."""

from __future__ import annotations

from math import prod

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernel import Launch, Temporary
from irload.plan.backends.llvm.kernels.copying import CopyOperand, contiguous_rows, copy
from irload.plan.backends.llvm.kernels.packing import Pack
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.strides import Strided


def packed_in_panels(
    weights: Array, packing: Packing, selector: Selector, *, chunked: bool
) -> tuple[Temporary, list[Launch]]:
    """Pack weights [group, column, sum…] of f32 for a contraction: first in the order of the sum, then in panels.

    `chunked`: the sum is over chunks of channels, which are the last axis, then over taps. The packing pads no chunk.
    """
    if chunked:
        split = weights.reshape(*weights.shape[:-1], weights.shape[-1] // packing.depth, packing.depth)
        weights = np.moveaxis(split, -2, 2)
    rows, (group, column, *_), copies = contiguous_rows(weights, selector)
    groups, columns, *sums = weights.shape
    pack = Pack.of(packing, Strided((groups, prod(sums), columns), (group, WORD, column)))
    panels = selector.temporary(pack.nbytes)
    return panels, [*copies, selector.launch(pack, [rows, panels])]


def packed_by_lane(weights: Array, lanes: int, selector: Selector) -> tuple[Temporary, list[Launch]]:
    """Pack weights [groups, n, n, taps…] of f32 of small groups: [block of channels, tap, n, channel of the block]."""
    rows, strides, launches = contiguous_rows(weights, selector)
    groups, n, _, *kernel = weights.shape
    channels, taps = groups * n, prod(kernel)
    block = taps * n * lanes * WORD
    table = selector.temporary(-(-channels // lanes) * block)
    whole, rest = divmod(channels, lanes)
    for blocks, width, first in ((whole, lanes, 0), (1, rest, whole)):
        if blocks and width:
            shape = (blocks, width, n, taps)
            source = Strided(shape, (lanes * strides[1], strides[1], strides[2], WORD), first * lanes * strides[1])
            target = Strided(shape, (block, WORD, lanes * WORD, n * lanes * WORD), first * block)
            launches.append(copy(CopyOperand(table, target), CopyOperand(rows, source), WORD, selector))
    return table, launches
