"""The kernel of poolings and depthwise convolutions, with vectors over channels. It skips padding.

A block computes several columns of the output. Taps along the columns are unrolled, and elements that neighbouring
windows share are loaded once. Blocks at both ends of a row, where elements may be padding, have separate code, which
checks the position of each element.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

from irload.core.tensor import Array
from irload.ops.sliding import WindowAxis
from irload.plan.backends.llvm import tuning
from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Vec
from irload.plan.backends.llvm.elements import SIZES, elements_of, is_contiguous
from irload.plan.backends.llvm.kernels.loops import tail_key
from irload.plan.backends.llvm.kernels.window_blocks import WindowBlock
from irload.plan.backends.llvm.kernels.windows import (
    WindowKernel,
    WindowRow,
    clipped_taps,
    emit_blocks,
    emit_ends,
    five,
    three_axes,
)
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import LINE, Target
from irload.record import record


@record()
class WindowFormula(ABC):
    """A reduction of windows, with one channel per lane: elements are combined to a total, then to the result."""

    name: ClassVar[str]

    @property
    def factors(self) -> int:
        """The factors for each tap and channel, in a table [vector of channels, tap, factor, lane]; 0 without table."""
        return 0

    def sums_rows(self, taps: int) -> bool:
        """True if each row of `taps` is summed separately, which keeps long sums accurate."""
        return False

    def loaded(self, element: Vec) -> list[Vec]:
        """Convert an element of the data to the elements that are combined, one per factor."""
        return [element]

    @abstractmethod
    def neutral(self, f: Function) -> Vec:
        """The total before any element is combined."""

    @abstractmethod
    def combined(self, f: Function, total: Vec, element: Vec, factor: Vec | None) -> Vec:
        """The total with one more element."""

    @abstractmethod
    def result(self, f: Function, values: list[Vec], elements: Callable[[], AnyInt], taps: int) -> Vec:
        """The result from `values`: the total, then the operands. `taps`: the number of taps of a whole window."""


@record()
class SlidingWindows(WindowKernel):
    """A `WindowFormula` on maps. A unit is a row of windows of `share` channels.

    A block has `vectors` × `columns` accumulators; a block with the tail of the channels has `tail_columns` columns.
    `known`: the `tail_key` of the channels. `unrolled`: the taps along columns are unrolled, else they are a loop. Also
    compiled in are the shape of a block, the tail of the channels, and the strides of channels.
    """

    channels: int
    known: int
    share: int
    vectors: int
    columns: int
    tail_columns: int
    unrolled: bool
    how: WindowFormula

    @staticmethod
    def of(
        how: WindowFormula, windows: Sequence[WindowAxis], tensors: Sequence[Array], selector: Selector
    ) -> SlidingWindows:
        """The kernel for maps of any rank."""
        x, target = tensors[0], selector.target
        axes, (batch, channels) = three_axes(windows), x.shape[:2]
        is_dense = is_contiguous(x, 1)
        unrolled = is_dense and (how.factors > 0 or axes[2].kernel <= tuning.WIDEST)
        vectors, columns = _tile(target, channels, axes[2], unrolled=unrolled) if is_dense else (1, 1)
        step = vectors * target.lanes
        most = tuning.MANY_CHANNEL_BLOCKS * step
        tail_columns = 0 if channels % step == 0 else columns if channels < most else min(columns, tuning.FEW_COLUMNS)
        share = _share(selector, channels, batch * axes[0].count * axes[1].count, vectors)
        maps = batch, axes, tuple(five(tensor.strides) for tensor in tensors), elements_of(tensors)
        channels_of = channels, tail_key(channels, step), share
        return SlidingWindows(target.lanes, *maps, *channels_of, vectors, columns, tail_columns, unrolled, how)

    @property
    def name(self) -> str:
        return self.how.name

    @property
    def code(self) -> SlidingWindows:
        strides = tuple((ANY, channel, ANY, ANY, ANY if column else 0) for _, channel, _, _, column in self.strides)
        return replace(self, batch=0, axes=self.axes_key, strides=strides, channels=ANY, share=ANY)

    @property
    def has_table(self) -> bool:
        return self.how.factors > 0

    @property
    def parts(self) -> int:
        return -(-self.channels // self.share)

    @property
    def cycles(self) -> float:
        is_dense = all(s[1] == SIZES[e] for s, e in zip(self.strides[:2], self.elements[:2], strict=True))
        loads = -(-self.channels // self.lanes) if is_dense else self.channels
        terms = self.taps * max(self.how.factors, 1)
        return self.windows * loads * (2 + 0.6 * terms)

    @property
    def taps(self) -> int:
        """The taps of a window."""
        return prod(axis.kernel for axis in self.axes)

    def write_row(self, f: Function, given: SlidingWindows, row: WindowRow) -> None:
        width, step, first = self.axes[2], self.vectors * self.lanes, row.part * given.share
        last = f.minimum(first + given.share, given.channels)
        whole = last // step * step

        def call(at: AnyInt, block: WindowBlock, bounds: Mapping[str, AnyInt], first: AnyInt, last: AnyInt) -> None:
            block.call(f, {**given.arguments_at(row, at), "channel": first, "channels": last, **bounds})

        def write_channels(tail: int, first: AnyInt, last: AnyInt) -> None:
            if not self.unrolled:
                for at in f.range(0, row.count):
                    tap, taps = clipped_taps(f, width, at, row.size)
                    call(at, WindowBlock(self, None, tail), {"tap": tap, "taps": taps}, first, last)
                return
            windows = self.tail_columns if tail else self.columns
            for at, at_end in emit_blocks(f, width, row.size, row.count, windows):
                bounds = emit_ends(f, width, at, row.size, row.count, windows) if at_end else {}
                call(at, WindowBlock(self, windows, tail, at_end=at_end), bounds, first, last)

        if self.known >= step:
            write_channels(0, first, whole)
        if tail := self.known % step:
            with f.when(whole < last):
                write_channels(tail, whole, last)


def _tile(target: Target, channels: int, width: WindowAxis, *, unrolled: bool) -> tuple[int, int]:
    """The vectors of channels and the columns of a block.

    The vectors fill a cache line, unless the factors of a row of taps would occupy too many registers.
    """
    is_wide = width.kernel >= tuning.WIDE
    line = 1 if is_wide else LINE // target.bytes
    vectors = min(line if unrolled else tuning.WINDOW_CHAINS, -(-channels // target.lanes))
    chains = (
        target.registers // 2
        if is_wide or channels < tuning.MANY_CHANNEL_VECTORS * target.lanes
        else tuning.WINDOW_CHAINS
    )
    return vectors, chains // vectors if unrolled else 1


def _share(selector: Selector, channels: int, rows: int, vectors: int) -> int:
    """The channels per unit: all, unless several threads divide few rows."""
    if selector.threads == 1 or rows >= tuning.FEW_ROWS:
        return channels
    block = vectors * selector.target.lanes
    return max(-(-channels // (4 * block)), 1) * block
