"""Copies between any strides: views that need one, concatenation, other layouts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irload.core.tensor import Array
from irload.plan.backends.llvm.axes import Axis, by_memory
from irload.plan.backends.llvm.blocks import Blocks, unrolled
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernel import Kernel, Launch, Temporary, address
from irload.plan.backends.llvm.kernels.elementwise import Pointwise, pointwise
from irload.plan.backends.llvm.kernels.runs import move, move_rest
from irload.plan.backends.llvm.kernels.transposing import TransposedCopy, contiguous_axes
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import IDENTITY, Concat, Relayout, ViewOp
from irload.plan.ir.strides import Strided, View
from irload.record import record


@record()
class Place:
    """A tensor in memory. `strided` counts bytes from the pointer."""

    pointer: int | Temporary
    strided: Strided
    keep: Sequence[Array] = ()

    @staticmethod
    def of(array: Array) -> Place:
        """An array where it lies."""
        return Place(address(array), Strided(array.shape, array.strides), [array])

    def through(self, view: View) -> Place | None:
        """The tensor through a view, None where no strides give that."""
        seen = view.of(self.strided)
        return None if seen is None else Place(self.pointer, seen, self.keep)

    @property
    def start(self) -> int | Temporary:
        """Where position 0 lies."""
        pointer, offset = self.pointer, self.strided.offset
        return Temporary(pointer.offset + offset) if isinstance(pointer, Temporary) else pointer + offset


def select_view(step: ViewOp, selector: Selector) -> list[Launch]:
    """Nothing where the output is a view of the input, else a copy."""
    if selector.memory.is_view(step.output):
        return []
    array = selector.stored(step.output)
    itemsize = array.itemsize
    source, out = Place.of(selector.stored(step.inputs[0])), Place.of(array)
    seen = source.through(step.view)
    if seen is not None:
        return [copy(out, seen, itemsize, selector)]
    shape = source.strided.shape
    into = out.through(View("reshape", shape))  # a reshape of what does not lie so
    if into is not None:
        return [copy(into, source, itemsize, selector)]
    temporary = selector.temporary(step.output.nbytes)
    packed, reshaped = (Place(temporary, _dense(s, itemsize)) for s in (shape, out.strided.shape))
    return [copy(packed, source, itemsize, selector), copy(out, reshaped, itemsize, selector)]


def select_concat(step: Concat, selector: Selector) -> list[Launch]:
    """The inputs, copied to their places in the output where they do not lie there already."""
    array = selector.stored(step.output)
    out = Place.of(array)
    launches: list[Launch] = []
    start = 0
    for value in step.inputs:
        ranges = [(0, n, 1) for n in value.shape]
        ranges[step.axis] = (start, value.shape[step.axis], 1)
        start += value.shape[step.axis]
        target = out.through(View("slice", ranges=tuple(ranges)))
        if selector.memory.source(value) is not step.output and target is not None:
            launches.append(copy(target, Place.of(selector.stored(value)), array.itemsize, selector))
    return launches


def select_relayout(step: Relayout, selector: Selector) -> list[Launch]:
    """A copy between layouts that strides describe, and between the types in which they are stored."""
    source, out = selector.stored(step.inputs[0]), selector.stored(step.output)
    if source.dtype != out.dtype:
        return [pointwise(IDENTITY, [out], [source], selector)]
    return [copy(Place.of(out), Place.of(source), out.itemsize, selector)]


def _dense(shape: tuple[int, ...], itemsize: int) -> Strided:
    return Strided(shape, tuple(itemsize * s for s in Strided.dense(shape).strides))


def copy(target: Place, source: Place, itemsize: int, selector: Selector) -> Launch:
    """The kernel that copies elements of so many bytes between tensors of one shape."""
    lengths = zip(target.strided.shape, target.strided.strides, source.strided.strides, strict=True)
    axes = by_memory([*(Axis(n, (t, s)) for n, t, s in lengths), Axis(itemsize, (1, 1))])
    if not axes or axes[-1].strides != (1, 1):
        axes.append(Axis(1, (1, 1)))
    kernel: Kernel = RunCopy(selector.target.lanes, tuple(axes))
    if itemsize == 4 and axes[-1].size == 4:
        elements = tuple(axes[:-1])
        ends = contiguous_axes(elements)
        kernel = Pointwise(selector.target.lanes, elements, IDENTITY, (F32, F32))
        if ends is not None:
            kernel = TransposedCopy(selector.target.lanes, *ends)
    return Launch(kernel, [target.start, source.start], [*target.keep, *source.keep])


@record()
class RunCopy(Kernel):
    """Copies runs of bytes, which lie along the last of the axes. Pointers: to, from."""

    lanes: int
    axes: tuple[Axis, ...]

    @property
    def count(self) -> int:
        return self._blocks.count

    @property
    def cycles(self) -> float:
        rows = prod(axis.size for axis in self.axes[:-1])
        return rows * (4 + self.axes[-1].size / 16)

    @property
    def _blocks(self) -> Blocks:
        return Blocks(self.axes, 4 * self.lanes, 2, 16384)

    def write(self, function: Function) -> None:
        f, blocks, width = function, self._blocks, 4 * self.lanes

        def row(places: list[Value], first: Int, last: Int) -> None:
            unrolled(f, first, last, 4, lambda at: move(f, places, f.multiply(at, width), width))
            if blocks.rest:
                blocks.at_end(f, last, lambda: move_rest(f, places, blocks.row.size, width))

        blocks.walk(f, f["begin"], f["end"], [f.load_pointer(f["arguments"], 8 * k) for k in range(2)], row)
