"""Copies of the data of a convolution that include padding, or whose channels are padded to whole words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from irload.core.size import largest
from irload.core.tensor import Array
from irload.plan.backends.llvm.dot import BYTE_PAIRS, Dot
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernel import Launch, Temporary, address
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.copying import CopyOperand, copy
from irload.plan.backends.llvm.kernels.maps import Maps, channels_last, is_planar, unchanged
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.plan.ir.strides import Strided

FILLED = 4096
"""The bytes per run when memory is filled."""


def padded_maps(conv: ConvProblem, dot: Dot, fill: int | None, selector: Selector) -> Maps:
    """A copy with channels padded to whole words, and with padding whose bytes are `fill`; None: without padding.

    The copy is planar if the data are and words have one element, otherwise channels last. Elements that pad the
    channels of a group are not written, since their weights are 0.

    If it needs fewer words, the channels are not padded: the columns and channels of a window are one run of words.
    """
    data, (groups, _, depth), rank = conv.data, conv.shape[:3], len(conv.windows)
    run = _run(conv, dot)
    whole, size = depth if run else dot.words(depth) * dot.k, data.itemsize
    planar = dot.k == 1 and is_planar(data)
    windows, read, begins = conv.windows, tuple(w.size for w in conv.windows), (0,) * rank
    sizes = read
    if fill is not None:
        begins = tuple(max(w.begin, 0) for w in windows)
        sizes = tuple(largest(b + w.size, w.reach - w.begin + b) for b, w in zip(begins, windows, strict=True))
        windows = tuple(
            replace(w, size=size, begin=w.begin - b) for w, size, b in zip(windows, sizes, begins, strict=True)
        )
    order = range(3 + rank) if planar else (0, *range(3, 3 + rank), 1, 2)
    strides = Strided.dense((data.shape[0], groups, whole, *sizes), order).in_bytes(size).strides
    nbytes = -(-(data.shape[0] * strides[0] + (WORD if run else 0)) // FILLED) * FILLED
    buffer = selector.temporary(nbytes)
    copies = [] if fill is None else [_filled(buffer, nbytes, fill, selector)]
    start = sum(b * stride for b, stride in zip(begins, strides[3:], strict=True))
    shape = (data.shape[0], groups, depth, *read)
    split = Strided(shape, (data.strides[0], depth * data.strides[1], *data.strides[1:]))
    target = CopyOperand(buffer, Strided(shape, strides, start))
    if all(read):
        copies.append(copy(target, CopyOperand(address(data), split, [data]), size, selector))

    def arrange(weights: Array) -> Array:
        """[G, O, C, K…] → [G, O, K…, channels of whole words], or [G, O, lines of taps…, words of a run]."""
        moved = channels_last(weights)
        if run:
            moved = moved.reshape(*moved.shape[:-2], -1)
        pads = [(0, 0)] * (moved.ndim - 1)
        return np.pad(moved, [*pads, (0, (run or whole) - moved.shape[-1])])

    if run:
        windows = (*windows[:-1], replace(windows[-1], kernel=1))
    return Maps(
        buffer,
        strides[0],
        strides[1],
        strides[3:],
        windows,
        Chunks.in_place(run or whole, strides[2], dot),
        nbytes,
        copies=copies,
        planar=planar,
        arrange=unchanged if planar else arrange,
        key=(planar, whole, run),
    )


def _run(conv: ConvProblem, dot: Dot) -> int:
    """The elements of the words that contain the columns and channels of a window; 0 if channels are padded instead.

    `Integers.pairs_fit` holds for pairs of channels, but not for pairs across columns.
    """
    (groups, _, depth), columns = conv.shape[:3], conv.windows[-1]
    words = dot.words(columns.kernel * depth)
    joined = groups == 1 and columns.dilation == 1 and words < columns.kernel * dot.words(depth)
    return words * dot.k if joined and dot.k > 1 and dot is not BYTE_PAIRS else 0


def _filled(buffer: Temporary, nbytes: int, fill: int, selector: Selector) -> Launch:
    """Fill memory with one byte."""
    run = selector.keep_alive(weight_bytes(FILLED))
    run[...] = fill
    shape = (nbytes // FILLED, FILLED)
    source = CopyOperand(address(run), Strided(shape, (0, 1)), [run])
    return copy(CopyOperand(buffer, Strided.dense(shape)), source, 1, selector)
