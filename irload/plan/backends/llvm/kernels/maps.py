"""The data of convolutions in the form that contractions read: in place, or a copy rounded to the type of the dot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm.axes import Axis
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import element_of
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary
from irload.plan.backends.llvm.kernels.contraction.chunks import Chunks, reads_in_place
from irload.plan.backends.llvm.kernels.conv_problem import ConvProblem
from irload.plan.backends.llvm.kernels.groups import groups_per_tile, joined
from irload.plan.backends.llvm.kernels.windows import CopiedAxis
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tile import SumLevel
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
    follow from the windows. `planar`: channels are the outermost loop of the sum. `arrange` reorders weights [G,O,C,K…]
    to the order of the sum; `key` identifies this order.
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
    planar = is_planar(data)
    return Maps(
        data,
        data.strides[0],
        depth * data.strides[1],
        data.strides[2:],
        conv.windows,
        Chunks.in_place(depth, data.strides[1], dot),
        data.nbytes,
        planar=planar,
        arrange=unchanged if planar else channels_last,
        key=planar,
    )


def is_planar(data: Array) -> bool:
    """True if the channels of a position are not contiguous."""
    return data.shape[1] > 1 and data.strides[1] != data.itemsize


def unchanged(weights: Array) -> Array:
    """Weights [G,O,C,K…], the order of planar data."""
    return weights


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
