"""Windows along the spatial axes of maps: their keys, the layout of copies, and blocks of the windows of a row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from irload.ops.sliding import WindowAxis
from irload.ops.windows import dilated
from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import digits, either, offset
from irload.record import record

FARTHEST = 1 << 31
"""The maximum span of the windows of an axis, in elements, so that offsets do not overflow."""


def is_near(axis: WindowAxis) -> bool:
    """True if the offsets of all elements of the windows are below FARTHEST."""
    return axis.reach + abs(axis.begin) + axis.size < FARTHEST


def axis_key(axis: WindowAxis) -> WindowAxis:
    """The axis in the key of code: equal for axes with equal windows that are either all padded or all unpadded."""
    return replace(axis, size=0 if axis.is_padded else dilated(axis.kernel, axis.dilation) - axis.begin, count=1)


def clipped_taps(f: Function, axis: WindowAxis, position: AnyInt, size: AnyInt) -> tuple[AnyInt, AnyInt]:
    """Emit `WindowAxis.taps` of an axis with padding: the range of taps inside the data. Its end may precede its begin.

    Does not use `axis.size` and `axis.count`.
    """
    start = position * axis.stride - axis.begin
    first, last = f.maximum(0 - start, 0), f.maximum(size - start, 0)
    if axis.dilation > 1:
        first, last = ((n + (axis.dilation - 1)) // axis.dilation for n in (first, last))
    return f.minimum(first, axis.kernel), f.minimum(last, axis.kernel)


@record()
class CopiedAxis:
    """An axis of a copy of maps in which each tap of the windows reads contiguous positions for consecutive outputs.

    `stride`: the bytes between positions of the data. In the copy, positions that differ by a multiple of the windows'
    stride are contiguous and form a phase. The copy omits the last phases if no tap reads them.

    `by_tap`: the copy has one phase per tap, with the positions that the tap reads. Then the outputs of consecutive
    lines are contiguous, too. `padded`: whether some positions are padding, in the key of code.
    """

    windows: WindowAxis
    stride: int
    by_tap: bool = False
    padded: bool | None = None

    @property
    def phases(self) -> int:
        """The phases of the copy."""
        taps = self.windows.kernel
        return taps if self.by_tap else max(k * self.windows.dilation % self.windows.stride for k in range(taps)) + 1

    @property
    def length(self) -> int:
        """The positions of each phase."""
        windows = self.windows
        between = 0 if self.by_tap else (windows.kernel - 1) * windows.dilation // windows.stride
        return between + windows.count

    @property
    def apart(self) -> int:
        """The distance between phases, in positions of the data."""
        return self.windows.dilation if self.by_tap else 1

    @property
    def plain(self) -> CopiedAxis:
        """The axis with the same copy, as an axis with a tap for each phase."""
        windows = WindowAxis(
            self.windows.size, self.length, self.phases, self.windows.stride, self.apart, self.windows.begin
        )
        return CopiedAxis(windows, self.stride, by_tap=True)

    @property
    def key(self) -> CopiedAxis:
        """The `plain` axis in the key of code, which reads sizes, padding and strides."""
        windows = replace(self.plain.windows, size=ANY, count=ANY, begin=ANY)
        return CopiedAxis(windows, ANY, by_tap=True, padded=self.is_padded)

    @property
    def is_padded(self) -> bool:
        """True if some positions of the copy are padding."""
        if self.padded is not None:
            return self.padded
        last = (self.length - 1) * self.windows.stride + (self.phases - 1) * self.apart
        return self.windows.begin > 0 or last - self.windows.begin >= self.windows.size

    def tap(self, k: int) -> tuple[int, int]:
        """The phase that tap k reads, and its position there for output 0."""
        if self.by_tap:
            return k, 0
        position, phase = divmod(k * self.windows.dilation, self.windows.stride)
        return phase, position


WindowAxes = tuple[WindowAxis, WindowAxis, WindowAxis]
"""Depth, height and width."""


def emit_blocks(
    f: Function, axis: WindowAxis, size: AnyInt, count: AnyInt, windows: int
) -> Iterator[tuple[AnyInt, bool]]:
    """The first window of each block of `windows`, and whether some elements or windows may be outside the map.

    The body is emitted for both cases.
    """
    first, stop = whole_windows(f, axis, size, count)
    for at in f.range(0, count, windows):
        inside = at + windows <= stop
        for at_end in either(f, (at >= first) & inside if first else inside, False, True):
            yield at, at_end


def whole_windows(f: Function, axis: WindowAxis, size: AnyInt, count: AnyInt) -> tuple[int, AnyInt]:
    """Emit the range of windows without taps outside the map; its end may precede its begin."""
    span = dilated(axis.kernel, axis.dilation) - axis.begin
    stop = f.minimum(f.maximum(size - (span - axis.stride), 0) // axis.stride, count)
    return max(-(-axis.begin // axis.stride), 0), stop


def emit_ends(
    f: Function, axis: WindowAxis, at: AnyInt, size: AnyInt, count: AnyInt, windows: int
) -> dict[str, AnyInt]:
    """Emit the arguments of a block at an end of a row.

    `windows`: the number of windows on the map. Elements `first`…`last` − 1 of the block are on the map.
    """
    begin = at * axis.stride - axis.begin
    count_left = f.minimum(count - at, windows)
    last = f.minimum(size - begin, (count_left - 1) * axis.stride + dilated(axis.kernel, axis.dilation))
    return {"windows": count_left, "first": f.maximum(0 - begin, 0), "last": last, "window": at, "size": size}


def readers(axis: WindowAxis, windows: int) -> dict[int, list[tuple[int, int]]]:
    """For each element that neighbouring windows read, in memory order: the pairs (window, tap) that read it."""
    pairs: dict[int, list[tuple[int, int]]] = {}
    for window, tap in product(range(windows), range(axis.kernel)):
        pairs.setdefault(window * axis.stride + tap * axis.dilation, []).append((window, tap))
    return dict(sorted(pairs.items()))


@record(eq=False)
class WindowRow:
    """A part of a row of `count` windows over `size` columns.

    `tensors`: the data of the first tap, then the results and operands of the first window, all at channel 0.
    `arguments`: of the functions of windows: the table, if any; the ranges of taps; the bytes between the planes
    (`down`) and the rows (`across`) of neighbouring taps, and between the columns of each tensor.
    """

    part: AnyInt
    tensors: list[Pointer]
    arguments: Mapping[str, AnyInt | Pointer]
    size: AnyInt
    count: AnyInt


@record()
class WindowKernel(Kernel):
    """A kernel of windows of maps [N,C,D,H,W]. A unit is one of `parts` parts of a row of windows.

    Pointers: data, results, operands of their shape, and a table if the kernel `has_table`. `strides`, in bytes, and
    `elements` describe all tensors except the table.

    The code reads the batch, sizes and counts of the axes, and strides. Compiled in are the windows, since taps are
    unrolled; and whether planes and rows have padding.
    """

    lanes: int
    batch: int
    axes: WindowAxes
    strides: tuple[tuple[int, ...], ...]
    elements: tuple[str, ...]

    @property
    def has_table(self) -> bool:
        """True if there is a table."""
        return True

    @property
    @abstractmethod
    def parts(self) -> int:
        """The parts of a row of windows."""

    @property
    def axes_key(self) -> WindowAxes:
        """The axes in the key of code."""
        depth, height = map(axis_key, self.axes[:2])
        return depth, height, replace(self.axes[2], size=0, count=1)

    @property
    def numbers(self) -> tuple[int, ...]:
        sizes = (n for axis in self.axes for n in (axis.size, axis.count))
        return (self.parts, *sizes, *unknown(self, self.code))

    @property
    def count(self) -> int:
        return self.batch * self.parts * self.axes[0].count * self.axes[1].count

    @property
    def windows(self) -> int:
        """The number of windows of all maps, for one channel."""
        return self.batch * prod(axis.count for axis in self.axes)

    def write(self, f: Function) -> None:
        arguments = Arguments(f)
        tensors, table = arguments.pointers(len(self.strides)), arguments.pointers(int(self.has_table))
        parts, sizes = arguments.integer(), [arguments.integers(2) for _ in self.axes]
        given = arguments.filled(self)
        for index in f.range(f["begin"], f["end"]):
            sample, (part, u, v) = digits(index, (parts, sizes[0][1], sizes[1][1]))
            shared: dict[str, AnyInt | Pointer] = {"table": table[0]} if table else {}
            for name, axis, at, (size, _) in zip(("plane", "row"), self.axes, (u, v), sizes, strict=False):
                taps = clipped_taps(f, axis, at, size) if axis.is_padded else (0, axis.kernel)
                shared[name], shared[f"{name}s"] = taps
            first_tap = [at * axis.stride - axis.begin for axis, at in zip(self.axes, (u, v, 0), strict=True)]
            positions = [(sample, 0, *first_tap)] + [(sample, 0, u, v, 0)] * (len(tensors) - 1)
            starts = [p + offset(s, at) for p, s, at in zip(tensors, given.strides, positions, strict=True)]
            for k, name in enumerate(("down", "across")):
                shared[name] = self.axes[k].dilation * given.strides[0][2 + k]
            shared |= {f"column{k}": given.strides[k][4] for k, s in enumerate(self.strides) if s[4] == ANY}
            self.write_row(f, given, WindowRow(part, starts, shared, *sizes[2]))

    @abstractmethod
    def write_row(self, f: Function, given: Any, row: WindowRow) -> None:
        """Emit a part of a row. `given`: the kernel with run-time values in place of ANY."""

    def arguments_at(self, row: WindowRow, at: AnyInt) -> dict[str, AnyInt | Pointer]:
        """The arguments of the functions of windows for a window of a row: the tensors, and the shared arguments."""
        steps = [(at if k else at * self.axes[2].stride) * strides[4] for k, strides in enumerate(self.strides)]
        tensors = {f"tensor{k}": start + step for k, (start, step) in enumerate(zip(row.tensors, steps, strict=True))}
        return {**tensors, **row.arguments}

    def column(self, f: Function, tensor: int) -> AnyInt:
        """The bytes between columns of a tensor, in a function of windows."""
        stride = self.strides[tensor][4]
        return f[f"column{tensor}"] if stride == ANY else stride

    def bounds(self, f: Function) -> list[tuple[AnyInt, AnyInt]]:
        """The ranges of the taps along planes and along rows, in a function of windows."""
        axes = zip(("plane", "row"), self.axes, strict=False)
        return [(f[name], f[f"{name}s"]) if axis.is_padded else (0, axis.kernel) for name, axis in axes]


def five(strides: Sequence[int]) -> tuple[int, ...]:
    """The strides of maps [N,C,X…], extended to [N,C,D,H,W]."""
    return (*strides[:2], *(0,) * (5 - len(strides)), *strides[2:])


def three_axes(windows: Sequence[WindowAxis]) -> WindowAxes:
    """The windows along depth, height and width. A missing axis has one window with one tap."""
    depth, height, width = (*(WindowAxis(1, 1),) * (3 - len(windows)), *windows)
    return depth, height, width
