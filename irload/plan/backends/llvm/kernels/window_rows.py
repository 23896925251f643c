"""The loop over rows of windows of maps, which poolings and depthwise convolutions share.

Code for maps of any size and any number of channels is the same: it reads the batch, the sizes and counts of the axes,
and the strides. Compiled in are the windows and their borders along each axis, since taps are unrolled.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, offset
from irload.plan.backends.llvm.kernels.windows import WindowAxes, axis_key, emit_taps, is_fixed
from irload.record import record


@record()
class Row:
    """One row of windows: its channels first…last−1, and the taps of its windows along depth and height.

    `tensors`: the data at the first of these planes and rows, and the results and operands of the first window, all
    at channel 0, and their `strides`. `pitches`: the bytes between planes and between rows that
    neighbouring taps read. `size`, `count`: the columns of the data, and the windows of the row.
    """

    first: AnyInt
    last: AnyInt
    planes: tuple[AnyInt, AnyInt]
    rows: tuple[AnyInt, AnyInt]
    tensors: list[Pointer]
    strides: list[tuple[AnyInt, ...]]
    pitches: tuple[AnyInt, AnyInt]
    size: AnyInt
    count: AnyInt


@record()
class WindowRows(Kernel):
    """A kernel that writes windows of maps [N,C,D,H,W] row by row. Strides count bytes.

    Pointers: data, results, operands of the shape of the results, then a table, which some kernels do not need.
    `strides` and `elements` describe all but the table. Vectors follow the channels, whose strides are compiled in.
    A unit is a row of windows of `share` channels.
    """

    lanes: int
    batch: int
    channels: int
    axes: WindowAxes
    strides: tuple[tuple[int, ...], ...]
    elements: tuple[str, ...]
    share: int

    @property
    def code(self) -> Self:
        strides = tuple((0, channel, 0, 0, int(column != 0)) for _, channel, _, _, column in self.strides)
        depth, height, width = map(axis_key, self.axes)
        return replace(self, batch=0, channels=self.tail, axes=(depth, height, width), strides=strides, share=1)

    @property
    @abstractmethod
    def tail(self) -> int:
        """The fewest channels for which the code is the same."""

    @property
    def numbers(self) -> tuple[int, ...]:
        sizes = [n for axis in self.axes for n in (axis.size, axis.count)]
        strides = [stride for strides in self.strides for stride in strides]
        return (self.channels, self.share, self._shares, *sizes, *strides)

    @property
    def count(self) -> int:
        return self.batch * self._shares * self.axes[0].count * self.axes[1].count

    @property
    def _shares(self) -> int:
        return -(-self.channels // self.share)

    @property
    def has_table(self) -> bool:
        """True if the kernel reads a table behind the tensors."""
        return False

    @abstractmethod
    def write_row(self, f: Function, row: Row, table: Pointer | None) -> None:
        """Write the windows of a row."""

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(len(self.strides) + self.has_table)]
        numbers = iter(range(len(pointers), len(pointers) + len(self.numbers)))

        def number(known: int | None = None) -> AnyInt:
            at = next(numbers)
            return f.load_int(f["arguments"], 8 * at) if known is None else known

        channels, share, shares = number(), number(), number()
        known = [(axis.size, axis.count) if is_fixed(axis) else (None, None) for axis in self.axes]
        sizes = [(number(size), number(count)) for size, count in known]
        strides = [
            tuple(number(s if k == 1 or (k == 4 and s == 0) else None) for k, s in enumerate(each))
            for each in self.strides
        ]

        def unit(index: Int, _: list[Any]) -> None:
            sample, (part, u, v) = digits(f, index, (shares, sizes[0][1], sizes[1][1]))
            planes, rows = (
                emit_taps(f, axis, at, size)
                for axis, at, (size, _) in zip(self.axes[:2], (u, v), sizes[:2], strict=True)
            )
            first_tap = [at * axis.stride - axis.begin for axis, at in zip(self.axes, (u, v, 0), strict=True)]
            places = [(sample, 0, *first_tap)] + [(sample, 0, u, v, 0)] * len(strides)
            tensors = [p + offset(f, s, at) for p, s, at in zip(pointers, strides, places, strict=False)]
            pitches = [axis.dilation * strides[0][2 + k] for k, axis in enumerate(self.axes[:2])]
            first = part * share
            row = Row(
                first,
                f.minimum(first + share, channels),
                planes,
                rows,
                tensors,
                strides,
                (pitches[0], pitches[1]),
                *sizes[2],
            )
            self.write_row(f, row, pointers[-1] if self.has_table else None)

        f.loop(f["begin"], f["end"], 1, unit)
