"""The data of convolutions in the form that contractions read: in place, or a copy.

A copy is rounded to the type of the dot, includes padding, or has channels that are padded to whole words.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from irload.core.size import largest
from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.dot import BYTE_PAIRS, Dot
from irload.plan.backends.llvm.elements import WORD, element_of
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary, address
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks, reads_in_place
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.copying import CopyOperand, copy
from irload.plan.backends.llvm.kernels.groups import groups_per_tile, joined
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import SumLevel
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.plan.ir.strides import Strided
from irload.record import record

if TYPE_CHECKING:
    from irload.plan.backends.llvm.kernels.reorder import Reorder


def channels_last(weights: Array) -> Array:
    """Weights [G,O,C,K…] → [G,O,K…,C]."""
    return np.moveaxis(weights, 2, -1)


@record()
class Maps:
    """The data of a convolution, in place or a copy.

    Strides in bytes: `batch`, `group`, and `strides` along each spatial axis. `windows`: over the data or the copy.
    `copies`: the launches that write the copy. `offsets`: the bytes from the data to each tap of output 0, unless they
    follow from the windows. `planar`: channels are the outermost loop of the sum, in the order of weights [G,O,C,K…].
    Otherwise `arrange` reorders weights to the order of the sum. `key` identifies this order.
    """

    data: Array | Temporary
    batch: int
    group: int
    strides: tuple[int, ...]
    windows: tuple[WindowAxis, ...]
    chunks: Chunks
    nbytes: int
    copies: Sequence[Launch] = ()
    offsets: tuple[int, ...] | None = None
    planar: bool = False
    contiguous_windows: bool = False
    """True for the copies of `few_channels`, in which the windows along columns are contiguous."""
    arrange: Callable[[Array], Array] = channels_last
    key: Hashable = None

    @property
    def steps(self) -> tuple[int, ...]:
        """The bytes between outputs along each spatial axis."""
        return tuple(w.stride * stride for w, stride in zip(self.windows, self.strides, strict=True))

    @property
    def taps(self) -> tuple[int, ...]:
        """The bytes from the data to each tap of output 0."""
        if self.offsets is not None:
            return self.offsets
        offsets = [
            [(k * w.dilation - w.begin) * stride for k in range(w.kernel)]
            for w, stride in zip(self.windows, self.strides, strict=True)
        ]
        return each_tap(offsets)

    def levels(self, dot: Dot, *, on_grid: bool = False) -> tuple[SumLevel, ...]:
        """The loops of a register tile. `on_grid`: the columns are the outputs of a `Grid`."""
        taps = [
            SumLevel(w.kernel, w.dilation * pitch, k if on_grid else None, w.stride)
            for k, (w, pitch) in enumerate(zip(self.windows, self.strides, strict=True))
        ]
        channels = self.chunks.levels(dot)
        outer = len(channels) if self.planar else len(channels) - 1
        order = [*channels[:outer], *taps, *channels[outer:]]
        needed = [level for level in order if level.count > 1 or level.axis is not None]
        return tuple(needed or channels[-1:])


def each_tap(along: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """The offsets of all taps of a window. `along`: the offsets of the taps along each axis."""
    return tuple(map(sum, product(*along)))


def maps_in_place(conv: ConvProblem, dot: Dot, depth: int) -> Maps | None:
    """The data without a copy, for groups of `depth` channels. None if a contraction requires a copy."""
    data = conv.data
    if not reads_in_place(data, 1, depth, dot):
        return None
    planar, strides = is_planar(data), data.strides
    chunks = Chunks.in_place(depth, strides[1], dot)
    maps = Maps(data, strides[0], depth * strides[1], strides[2:], conv.windows, chunks, data.nbytes)
    return replace(maps, planar=planar, key=planar)


def is_planar(data: Array) -> bool:
    """True if the channels of a position are not contiguous."""
    return data.shape[1] > 1 and data.strides[1] != data.itemsize


def unpadded_copy(conv: ConvProblem, selector: Selector) -> Maps:
    """A copy of the data for register tiles. It omits padding, which these skip, and positions that no tap reads."""
    spatial: list[CopiedAxis] = []
    windows: list[WindowAxis] = []
    for window, stride in zip(conv.windows, conv.data.strides[2:], strict=True):
        if window.kernel == 1 and not window.is_padded:
            spatial.append(CopiedAxis(window, stride))
            windows.append(WindowAxis(window.count, window.count))
        else:
            spatial.append(CopiedAxis(WindowAxis(window.size, window.size), stride))
            windows.append(window)
    copy = padded_copy(conv, spatial, selector.target)
    return launch_copy(conv, copy, maps_of_copy(conv, copy, tuple(windows)), selector)


def launch_copy(conv: ConvProblem, copy: Kernel | None, maps: Maps, selector: Selector) -> Maps:
    """The maps with memory for the copy, and the launch of the kernel that writes it."""
    if copy is None:
        return maps
    buffer = selector.temporary(maps.nbytes)
    return replace(maps, data=buffer, copies=[selector.launch(copy, [conv.data, buffer])])


def padded_copy(conv: ConvProblem, spatial: Sequence[CopiedAxis], target: Target) -> Reorder:
    """A copy of the data: [sample, group, chunk, phases…, positions…, 32]."""
    from irload.plan.backends.llvm.kernels.reorder import Reorder  # not needed by f32

    groups, _, depth = joined(conv.shape, groups_per_tile(conv.shape, target))
    data = conv.data
    samples = Axis(data.shape[0], (data.strides[0],)), Axis(groups, (depth * data.strides[1],))
    return Reorder(samples, depth, data.strides[1], (), tuple(spatial), element_of(data))


def maps_of_copy(
    conv: ConvProblem, copy: Reorder, windows: tuple[WindowAxis, ...], offsets: tuple[int, ...] | None = None
) -> Maps:
    """The maps in a padded copy."""
    batch, group, chunk, *_ = copy.strides
    chunks = Chunks.copied(copy.depth, chunk)
    return Maps(conv.data, batch, group, copy.strides[-len(windows) :], windows, chunks, copy.nbytes, offsets=offsets)


FILLED = 4096
"""The bytes per run when memory is filled."""


def padded_maps(conv: ConvProblem, dot: Dot, fill: int | None, selector: Selector) -> Maps:
    """A copy with channels padded to whole words, and with padding whose elements are `fill`; None: without padding.

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
    copies = [] if fill is None else [_filled(buffer, nbytes, fill, data.dtype, selector)]
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
        missing = (run or whole) - moved.shape[-1]
        return np.pad(moved, [*[(0, 0)] * (moved.ndim - 1), (0, missing)]) if missing else moved

    if run:
        windows = (*windows[:-1], replace(windows[-1], kernel=1))
    batch, group, channel, *along = strides
    chunks, key = Chunks.in_place(run or whole, channel, dot), (planar, whole, run)
    return Maps(buffer, batch, group, tuple(along), windows, chunks, nbytes, copies, None, planar, False, arrange, key)


def _run(conv: ConvProblem, dot: Dot) -> int:
    """The elements of the words that contain the columns and channels of a window; 0 if channels are padded instead.

    `Integers.pairs_fit` holds for pairs of channels, but not for pairs across columns.
    """
    (groups, _, depth), columns = conv.shape[:3], conv.windows[-1]
    words = dot.words(columns.kernel * depth)
    joined = groups == 1 and columns.dilation == 1 and words < columns.kernel * dot.words(depth)
    return words * dot.k if joined and dot.k > 1 and dot is not BYTE_PAIRS else 0


def _filled(buffer: Temporary, nbytes: int, fill: int, dtype: np.dtype[Any], selector: Selector) -> Launch:
    """Fill memory with one number of this type."""
    run = selector.keep_alive(weight_bytes(FILLED))
    run.view(dtype)[...] = fill
    shape = (nbytes // FILLED, FILLED)
    source = CopyOperand(address(run), Strided(shape, (0, 1)), [run])
    return copy(CopyOperand(buffer, Strided.dense(shape)), source, 1, selector)
