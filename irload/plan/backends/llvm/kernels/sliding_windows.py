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
from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY, column_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES, elements_of, is_contiguous
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, offset, tail_key
from irload.plan.backends.llvm.kernels.window_blocks import WindowBlock
from irload.plan.backends.llvm.kernels.windows import (
    WindowAxes,
    axis_key,
    clipped_taps,
    emit_blocks,
    emit_ends,
    emit_taps,
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
class SlidingWindows(Kernel):
    """A `WindowFormula` on maps [N,C,D,H,W]. Pointers: data, results, operands of their shape, a table if any.

    `strides`, in bytes, and `elements` describe all tensors except the table. A unit is a row of windows of `share`
    channels. A block has `vectors` × `columns` accumulators; a block with the tail of the channels has `tail_columns`
    columns. `unrolled`: the taps along columns are unrolled, else they are a loop.

    The code reads the batch, sizes and counts of the axes, and strides. Compiled in are the windows, since taps are
    unrolled; whether planes and rows have padding; the shape of a block; the tail of the channels; the strides of
    channels, and short ones of columns.
    """

    lanes: int
    batch: int
    channels: int
    axes: WindowAxes
    strides: tuple[tuple[int, ...], ...]
    elements: tuple[str, ...]
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
        unrolled = is_dense and is_narrow(axes[2])
        vectors, columns = _tile(target, channels, axes[2], unrolled=unrolled) if is_dense else (1, 1)
        step = vectors * target.lanes
        most = tuning.MANY_CHANNEL_BLOCKS * step
        tail_columns = 0 if channels % step == 0 else columns if channels < most else min(columns, tuning.FEW_COLUMNS)
        share = _share(selector, channels, batch * axes[0].count * axes[1].count, vectors)
        maps = batch, channels, axes, tuple(five(tensor.strides) for tensor in tensors), elements_of(tensors)
        return SlidingWindows(target.lanes, *maps, share, vectors, columns, tail_columns, unrolled, how)

    @property
    def name(self) -> str:
        return self.how.name

    @property
    def code(self) -> SlidingWindows:
        strides = tuple((ANY, channel, ANY, ANY, column_key(column)) for _, channel, _, _, column in self.strides)
        depth, height = map(axis_key, self.axes[:2])
        width = replace(self.axes[2], size=0, count=1)
        channels = tail_key(self.channels, self.vectors * self.lanes)
        return replace(self, batch=0, channels=channels, axes=(depth, height, width), strides=strides, share=1)

    @property
    def numbers(self) -> tuple[int, ...]:
        sizes = [n for axis in self.axes for n in (axis.size, axis.count)]
        strides = unknown(self.strides, self.code.strides)
        return (self.channels, self.share, self._shares, *sizes, *strides)

    @property
    def count(self) -> int:
        return self.batch * self._shares * self.axes[0].count * self.axes[1].count

    @property
    def cycles(self) -> float:
        is_dense = all(s[1] == SIZES[e] for s, e in zip(self.strides[:2], self.elements[:2], strict=True))
        loads = -(-self.channels // self.lanes) if is_dense else self.channels
        terms = self.taps * max(self.how.factors, 1)
        return self.batch * prod(axis.count for axis in self.axes) * loads * (2 + 0.6 * terms)

    @property
    def taps(self) -> int:
        """The taps of a window."""
        return prod(axis.kernel for axis in self.axes)

    @property
    def _shares(self) -> int:
        return -(-self.channels // self.share)

    def write(self, function: Function) -> None:
        f, tensors = function, len(self.strides)
        arguments = Arguments(f)
        pointers = arguments.pointers(tensors + (self.how.factors > 0))
        channels, share, shares = arguments.integers(3)
        sizes = [(arguments.integer(), arguments.integer()) for _ in self.axes]
        strides = arguments.filled(self.strides)
        for index in f.range(f["begin"], f["end"]):
            sample, (part, u, v) = digits(index, (shares, sizes[0][1], sizes[1][1]))
            constants: dict[str, AnyInt | Pointer] = {"table": pointers[tensors]} if self.how.factors else {}
            for name, axis, at, size in zip(("plane", "row"), self.axes, (u, v), sizes, strict=False):
                constants[name], constants[f"{name}s"] = emit_taps(f, axis, at, size[0])
            first_tap = [at * axis.stride - axis.begin for axis, at in zip(self.axes, (u, v, 0), strict=True)]
            positions = [(sample, 0, *first_tap)] + [(sample, 0, u, v, 0)] * (tensors - 1)
            rows = [p + offset(s, at) for p, s, at in zip(pointers, strides, positions, strict=False)]
            steps = {name: self.axes[k].dilation * strides[0][2 + k] for k, name in enumerate(("down", "across"))}
            steps |= {f"column{k}": along for k, (*_, along) in enumerate(strides) if isinstance(along, Int)}
            first = part * share
            last = f.minimum(first + share, channels)
            self._write_row(f, rows, (first, last), constants, steps, *sizes[2])

    def _write_row(
        self,
        f: Function,
        pointers: list[Pointer],
        channels: tuple[AnyInt, AnyInt],
        constants: Mapping[str, AnyInt | Pointer],
        steps: Mapping[str, AnyInt],
        size: AnyInt,
        count: AnyInt,
    ) -> None:
        """Emit `count` windows of a row over `size` columns, for channels first…last−1.

        `pointers`: the data of the first tap, and the results and operands of the first window, all at channel 0.
        `constants`: the table and the ranges of taps. `steps`: the bytes between the planes and between the rows of
        neighbouring taps, and between columns of each tensor.
        """
        width, step, (first, last) = self.axes[2], self.vectors * self.lanes, channels
        whole = last // step * step

        def call(at: AnyInt, block: WindowBlock, bounds: Mapping[str, AnyInt], first: AnyInt, last: AnyInt) -> None:
            addresses: dict[str, AnyInt | Pointer] = {}
            for k, pointer in enumerate(pointers):
                column = steps.get(f"column{k}", self.strides[k][4])
                addresses[f"tensor{k}"] = pointer + (at if k else at * width.stride) * column
            block.call(f, {**addresses, **constants, "channel": first, "channels": last, **steps, **bounds})

        def write_channels(tail: int, first: AnyInt, last: AnyInt) -> None:
            if not self.unrolled:
                for at in f.range(0, count):
                    tap, taps = clipped_taps(f, width, at, size)
                    call(at, WindowBlock(self, None, tail), {"tap": tap, "taps": taps}, first, last)
                return
            windows = self.tail_columns if tail else self.columns
            for at, at_end in emit_blocks(f, width, size, count, windows):
                bounds = emit_ends(f, width, at, size, count, windows) if at_end else {}
                call(at, WindowBlock(self, windows, tail, at_end=at_end), bounds, first, last)

        if self.channels >= step:
            write_channels(0, first, whole)
        if tail := self.channels % step:
            with f.when(whole < last):
                write_channels(tail, whole, last)


def is_narrow(width: WindowAxis) -> bool:
    """True if taps along rows are few enough to be unrolled."""
    return width.kernel <= tuning.WIDEST


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
