"""Gather: copies slices along any axis by indices. f16 slices and rows of compressed tables are widened to f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from irload.core.size import is_size
from irload.plan.backends.llvm.arguments import Arguments, AxisTable, unknown
from irload.plan.backends.llvm.axes import ANY, Axis, AxisLoop, any_sizes, axes_of, by_memory, merged, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES, WORD
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.kernels.loops import nested, repeat
from irload.plan.backends.llvm.kernels.runs import move_run, widen_run
from irload.plan.backends.llvm.kernels.weights import compression_of, pack_panels
from irload.plan.backends.llvm.operands import load_lanes, read
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.widening import CompressedPanel, Compression
from irload.plan.ir.compressed import compressed
from irload.plan.ir.steps import GatherStep
from irload.record import record


@record()
class GatherSlices(LineKernel):
    """y[outer…, picked…, within…] = x[outer…, indices[outer…, picked…], within…]. Pointers: y, x, indices.

    A unit is one slice. Strides in bytes: `outer`, of y, x and the indices (0 for axes that they do not have);
    `within`, of y and x; `picked`, of y and the indices. The last axis of `within` counts bytes, or elements if the
    kernel `widens` f16 to f32. `size`, `pitch`: length and stride of the gathered axis of x; `index`: bytes of an
    index. Slices of indices out of range are zeros. The code reads all sizes except for runs that are
    shorter than a vector for all shapes.
    """

    lanes: int
    picked: tuple[Axis, ...]
    within: tuple[Axis, ...]
    size: int
    pitch: int
    index: int
    widens: bool

    tensors: ClassVar[int] = 3

    @property
    def code(self) -> GatherSlices:
        *outer, run = self.within
        least = self.lanes if self.widens else 4 * self.lanes
        is_short = not is_size(run.size) and 0 <= run.size < least
        within = (*any_sizes(outer), replace(run, size=run.size if is_short else ANY))
        return replace(self, outer=(), picked=(), within=within, size=ANY, pitch=ANY)

    @property
    def given_numbers(self) -> tuple[int, ...]:
        return (*unknown(self, self.code), *table(self.picked, 2))

    @property
    def parts(self) -> int:
        return size_of(self.picked)

    @property
    def cycles(self) -> float:
        runs = size_of(self.within[:-1])
        return self.count * (10 + runs * (4 + self.within[-1].size / 16))

    def read(self, arguments: Arguments) -> tuple[GatherSlices, AxisTable]:
        return arguments.filled(self), arguments.table(2)

    def write_part(
        self, f: Function, given: tuple[GatherSlices, AxisTable], starts: list[Pointer], part: AnyInt
    ) -> None:
        (kernel, picked), (y, source, indices) = given, starts
        target, entry = picked.pointers(part, [y, indices])
        signed = f.load_int(entry, element=f"i{8 * self.index}")
        index = f.integer(signed + (signed < 0).as_int() * kernel.size)
        with f.when(index.below(kernel.size)):
            self._write_slice(f, kernel.within, [target, source + index * kernel.pitch])
        with f.otherwise():
            self._write_runs(f, kernel.within, [target])

    def _write_slice(self, f: Function, within: Sequence[Axis], addresses: list[Pointer]) -> None:
        self._write_runs(f, within, addresses)

    def _write_runs(self, f: Function, within: Sequence[Axis], addresses: list[Pointer]) -> None:
        """Copy the runs of a slice, or set them to zero if there is only the target."""
        *outer, run = within
        move = widen_run if self.widens else move_run
        for at in nested(f, [AxisLoop(axis.size, axis.strides[: len(addresses)]) for axis in outer], addresses):
            move(f, at, run.size)


@record()
class GatherWidened(GatherSlices):
    """y[picked…, column] = table[indices[picked…], column] for a compressed table: only the selected rows are widened.

    A row of the table is packed as a panel with one column, whose sum axis is the columns of the table (`within`).
    """

    form: Compression

    @property
    def cycles(self) -> float:
        return self.count * (20 + self.within[0].size / 2)

    def _write_slice(self, f: Function, within: Sequence[Axis], addresses: list[Pointer]) -> None:
        (target, source), columns = addresses, within[0].size
        row, each = CompressedPanel(self.form, columns, 1), self.form.group or columns
        for at in repeat(f, 0, self.form.groups(columns)):
            apply = self._factors(f, source + row.scales, source + row.zeros, at)
            first = at * each
            for k in repeat(f, 0, each, self.lanes):
                self._vector(f, source, target, first + k, apply)

    def _factors(self, f: Function, scales: Pointer, zeros: Pointer, group: AnyInt) -> Callable[[Vec], Vec]:
        """The function that applies scale and zero point of a group."""

        def load(start: Pointer, kind: str | None) -> Vec | None:
            return None if kind is None else read(f, start, group * SIZES[kind], 0, element=kind)

        return self.form.applied(f, load(scales, self.form.scale), load(zeros, self.form.zero))

    def _vector(
        self, f: Function, source: Pointer, target: Pointer, column: AnyInt, apply: Callable[[Vec], Vec]
    ) -> None:
        widening, members = self.form.widening, self.form.members
        if widening.code is None:
            value = load_lanes(f, source, column * SIZES[self.form.element], None, self.form.element)
        else:
            address, count = source + column // members * WORD, self.lanes // members
            if count == 1:
                words = f.splat(f.load_scalar(address, element="i32"))
            else:
                loaded = f.load_packed(address, 0, "i32", count)
                words = f.shuffle(loaded, loaded, [lane // members for lane in range(self.lanes)])
            shifts = f.numbers([widening.bits * (lane % members) for lane in range(self.lanes)])
            value = widening.code(f, words.shifted_right(shifts))
        f.store(apply(value), target, column * SIZES[F32])


def select_gather(step: GatherStep, selector: Selector) -> list[Launch]:
    """The kernel of a Gather."""
    widened = _widened_rows(step, selector)
    if widened is not None:
        return widened
    data, indices = (selector.array(v) for v in step.inputs)
    out, axis, shared = selector.array(step.output), step.axis, step.shared
    behind = axis + indices.ndim - shared
    index_strides = (*indices.strides[:shared], *(0,) * (axis - shared))
    before = axes_of(data.shape[:axis], out.strides[:axis], data.strides[:axis], index_strides)
    picked = axes_of(indices.shape[shared:], out.strides[axis:behind], indices.strides[shared:])
    inner = axes_of(out.shape[behind:], out.strides[behind:], data.strides[axis + 1 :])
    beside = (out.itemsize, data.itemsize) if step.widens else (1, 1)
    if not step.widens:
        inner.append(Axis(data.itemsize, beside))
    within = by_memory(inner)
    if not within or within[-1].strides != beside:
        within.append(Axis(1, beside))
    axes = tuple(merged(picked)), tuple(within)
    gathered = data.shape[axis], data.strides[axis], indices.itemsize
    kernel = GatherSlices(tuple(merged(before)), selector.target.lanes, *axes, *gathered, step.widens)
    return [selector.launch(kernel, [out, data, indices])]


def _widened_rows(step: GatherStep, selector: Selector) -> list[Launch] | None:
    """The kernel of a Gather from a compressed table, None if it is not compressed or not selected by rows."""
    data, out = step.inputs[0], selector.array(step.output)
    weights = compressed(data.source)
    if weights is None or step.axis or step.shared or len(data.shape) != 2 or out.strides[-1] != out.itemsize:
        return None
    form, lanes = compression_of(weights, -1), selector.target.lanes
    if form is None or form.members > lanes or (form.group or data.shape[1]) % lanes:
        return None
    indices = selector.array(step.inputs[1])
    picked = tuple(merged(axes_of(indices.shape, out.strides[:-1], indices.strides)))
    rows, columns = data.shape
    sizes = rows, form.nbytes(columns, 1), indices.itemsize
    kernel = GatherWidened((), lanes, picked, (Axis(columns, (4, 0)),), *sizes, True, form)
    pack = partial(pack_panels, CompressedPanel(form, columns, 1), -1, selector.target, selector.threads)
    packed = selector.packed_constant(data, ("rows", form), pack)
    return [selector.launch(kernel, [out, packed, indices])]
