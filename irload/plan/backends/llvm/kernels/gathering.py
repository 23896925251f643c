"""Gather: rows of a table, or slices along any axis, copied by indices; f16 is widened on its way."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from irload.plan.backends.llvm.axes import Axis, by_memory, merged, offsets, unbounded
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.runs import move_run, widen_run
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.spans import moved, nested
from irload.plan.ir.steps import Gather
from irload.record import record


@record()
class GatherSlices(Kernel):
    """y[before…, picked…, within…] = x[before…, indices[picked…], within…]. Pointers: x, indices, y.

    A unit is one slice. Strides count bytes: of y and x before and within, of y and the indices for what is picked.
    `pitch` lies between neighbours along the axis of x, which has `size` of them. An index takes `index` bytes.
    `widens`: x is f16, y f32.
    """

    lanes: int
    before: tuple[Axis, ...]
    picked: tuple[Axis, ...]
    within: tuple[Axis, ...]
    """The last of these axes counts bytes; elements where these are widened."""
    size: int
    pitch: int
    index: int
    widens: bool

    @property
    def code(self) -> GatherSlices:
        return self if self.before else replace(self, picked=unbounded(self.picked))

    @property
    def count(self) -> int:
        return prod(axis.size for axis in (*self.before, *self.picked))

    @property
    def cycles(self) -> float:
        runs = prod(axis.size for axis in self.within[:-1])
        return self.count * (10 + runs * (4 + self.within[-1].size / 16))

    def write(self, function: Function) -> None:
        f = function
        x, indices, y = (f.load_pointer(f["arguments"], 8 * k) for k in range(3))

        def unit(at: Value, _: list[Value]) -> None:
            line, slice_ = f.divmod(at, prod(axis.size for axis in self.picked)) if self.before else (0, at)
            target, source = moved(f, [y, x], offsets(f, line, self.before, 2))
            target, place = moved(f, [target, indices], offsets(f, slice_, self.picked, 2))
            given = f.load_int(place) if self.index == 8 else f.load_short_int(place)
            index = f.add(given, f.value("i64", f"select i1 {f.compare('slt', given, 0)}, i64 {self.size}, i64 0"))
            source = f.at(source, f.multiply(index, self.pitch))
            f.when(
                f.compare("ult", index, self.size),
                lambda: self._each_run(f, [target, source]),
                lambda: self._each_run(f, [target]),
            )

        f.loop(f["begin"], f["end"], 1, unit)

    def _each_run(self, f: Function, places: list[Value]) -> None:
        """Copy the runs of a slice; set them to zero where there is but the place that they go to."""
        *outer, run = self.within
        move = widen_run if self.widens else move_run

        def each(places: list[Value], carried: list[Value]) -> list[Value]:
            move(f, places, run.size)
            return carried

        nested(f, [Axis(axis.size, axis.strides[: len(places)]) for axis in outer], places, each, [])


def select_gather(step: Gather, selector: Selector) -> list[Launch]:
    """The kernel of a Gather."""
    data, indices = (selector.array(v) for v in step.inputs)
    out, axis = selector.array(step.output), step.axis
    behind = axis + indices.ndim
    before = [Axis(n, (out.strides[k], data.strides[k])) for k, n in enumerate(data.shape[:axis])]
    picked = [Axis(n, (out.strides[axis + k], indices.strides[k])) for k, n in enumerate(indices.shape)]
    strides = zip(out.shape[behind:], out.strides[behind:], data.strides[axis + 1 :], strict=True)
    inner = [Axis(n, (a, b)) for n, a, b in strides]
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
