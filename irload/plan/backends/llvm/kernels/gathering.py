"""Gather: rows of a table, or slices along any axis, copied by indices; f16 may be widened."""

from __future__ import annotations

from dataclasses import replace

from irload.plan.backends.llvm.arguments import Arguments, walk_lines
from irload.plan.backends.llvm.axes import (
    ANY,
    Axis,
    Loop,
    any_sizes,
    axes_of,
    by_memory,
    merged,
    numbers,
    size_of,
    table,
)
from irload.plan.backends.llvm.builder import Function, Pointer
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.loops import nested
from irload.plan.backends.llvm.kernels.runs import move_run, widen_run
from irload.plan.backends.llvm.kernels.widened_rows import select_widened_rows
from irload.plan.backends.llvm.selector import Selector
from irload.plan.ir.steps import GatherStep
from irload.record import record


@record()
class GatherSlices(Kernel):
    """y[before…, picked…, within…] = x[before…, indices[picked…], within…]. Pointers: x, indices, y.

    A unit is one slice. Strides are bytes: `before` and `within` of y and x, `picked` of y and the indices. The last
    axis of `within` counts bytes, or elements if the kernel `widens` f16 to f32. `pitch`: bytes between neighbours
    along the gathered axis of x, which has `size` of them; `index`: bytes of an index. The code reads all sizes
    except for runs shorter than a vector.
    """

    lanes: int
    before: tuple[Axis, ...]
    picked: tuple[Axis, ...]
    within: tuple[Axis, ...]
    size: int
    pitch: int
    index: int
    widens: bool

    @property
    def code(self) -> GatherSlices:
        return replace(self, before=(), picked=(), within=self._key, size=0, pitch=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        slices = size_of(self.picked)
        outer = (*table(self.before, 2), *table(self.picked, 2))
        return (self.size, self.pitch, slices, *numbers(self.within, self._key), *outer)

    @property
    def _key(self) -> tuple[Axis, ...]:
        *outer, run = self.within
        least = self.lanes if self.widens else 4 * self.lanes
        return (*any_sizes(outer), replace(run, size=run.size if 0 <= run.size < least else ANY))

    @property
    def count(self) -> int:
        return size_of((*self.before, *self.picked))

    @property
    def cycles(self) -> float:
        runs = size_of(self.within[:-1])
        return self.count * (10 + runs * (4 + self.within[-1].size / 16))

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        x, indices, y = given.pointers(3)
        size, pitch, slices = given.integers(3)
        within = given.loops(self._key)
        before, picked = given.table(2), given.table(2)
        for starts, number in walk_lines(f, slices, before, [y, x]):
            target, source = starts
            target, place = picked.pointers(number, [target, indices])
            signed = f.load_int(place) if self.index == 8 else f.load_short_int(place)
            index = f.integer(signed + (signed < 0).as_int() * size)
            with f.when(index.below(size)):
                self._each_run(f, within, [target, source + index * pitch])
            with f.otherwise():
                self._each_run(f, within, [target])

    def _each_run(self, f: Function, within: list[Loop], places: list[Pointer]) -> None:
        """Copy the runs of a slice, or set them to zero if there is only the target."""
        *outer, run = within
        move = widen_run if self.widens else move_run
        for at in nested(f, [Loop(axis.size, axis.strides[: len(places)]) for axis in outer], places):
            move(f, at, run.size)


def select_gather(step: GatherStep, selector: Selector) -> list[Launch]:
    """The kernel of a Gather."""
    widened = select_widened_rows(step, selector)
    if widened is not None:
        return widened
    data, indices = (selector.array(v) for v in step.inputs)
    out, axis = selector.array(step.output), step.axis
    behind = axis + indices.ndim
    before = axes_of(data.shape[:axis], out.strides[:axis], data.strides[:axis])
    picked = axes_of(indices.shape, out.strides[axis:behind], indices.strides)
    inner = axes_of(out.shape[behind:], out.strides[behind:], data.strides[axis + 1 :])
    beside = (out.itemsize, data.itemsize) if step.widens else (1, 1)
    if not step.widens:
        inner.append(Axis(data.itemsize, beside))
    within = by_memory(inner)
    if not within or within[-1].strides != beside:
        within.append(Axis(1, beside))
    kernel = GatherSlices(
        selector.target.lanes,
        tuple(merged(before)),
        tuple(merged(picked)),
        tuple(within),
        data.shape[axis],
        data.strides[axis],
        indices.itemsize,
        step.widens,
    )
    return [selector.launch(kernel, [data, indices, out])]
