"""Gather from compressed tables, as embeddings are: only the selected rows are widened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.llvm.arguments import Arguments
from irload.plan.backends.llvm.axes import Axis, axes_of, merged, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import DTYPES, F32, SIZES, WORD
from irload.plan.backends.llvm.kernel import Kernel, Launch
from irload.plan.backends.llvm.kernels.compressed import compression_of, factors_of, words_of
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.operands import load_lanes, read
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.weight_memory import weight_bytes
from irload.plan.backends.llvm.widening import Compression
from irload.plan.ir.compressed import compressed
from irload.plan.ir.constant import Constant
from irload.plan.ir.steps import GatherStep
from irload.record import record


@record()
class GatherWidened(Kernel):
    """y[picked…, column] = table[indices[picked…], column]. Pointers: table, indices, y.

    A row of the table has its words, its scales, and its zero points: one of each per group of columns. A unit is one
    row. `rows`: of the table; `index`: bytes of an index. The code reads the numbers of rows and columns.
    """

    lanes: int
    form: Compression
    picked: tuple[Axis, ...]
    rows: int
    columns: int
    index: int

    @property
    def code(self) -> GatherWidened:
        return replace(self, picked=(), rows=0, columns=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        groups, words = self.form.groups(self.columns), self.form.words(self.columns) * WORD
        each = self.columns // groups
        zeros = words + groups * SIZES.get(self.form.scale or "", 0)
        return (self.rows, self.pitch, each, groups, words, zeros, *table(self.picked, 2))

    @property
    def pitch(self) -> int:
        """The bytes of a row."""
        each = sum(SIZES[kind] for kind in (self.form.scale, self.form.zero) if kind)
        size = self.form.words(self.columns) * WORD + self.form.groups(self.columns) * each
        return -(-size // WORD) * WORD

    @property
    def count(self) -> int:
        return size_of(self.picked)

    @property
    def cycles(self) -> float:
        return self.count * (20 + self.columns / 2)

    def write(self, function: Function) -> None:
        f, given = function, Arguments(function)
        x, indices, y = given.pointers(3)
        rows, pitch, each, groups, scales, zeros = given.integers(6)
        picked = given.table(2)
        for number in f.range(f["begin"], f["end"]):
            target, place = picked.pointers(number, [y, indices])
            signed = f.load_int(place) if self.index == 8 else f.load_short_int(place)
            index = f.integer(signed + (signed < 0).as_int() * rows)
            source = x + index * pitch
            with f.when(index.below(rows)):
                for at in repeat(f, 0, groups):
                    apply = self._factors(f, source + scales, source + zeros, at)
                    first = at * each
                    for k in repeat(f, 0, each, self.lanes):
                        self._vector(f, source, target, first + k, apply)
            with f.otherwise():
                for at in repeat(f, 0, groups * each, self.lanes):
                    f.store(f.zero(), target, at * SIZES[F32])

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
            place, count = source + column // members * WORD, self.lanes // members
            if count == 1:
                words = f.splat(f.load_scalar(place, element="i32"))
            else:
                loaded = f.load_packed(place, 0, "i32", count)
                words = f.shuffle(loaded, loaded, [lane // members for lane in range(self.lanes)])
            shifts = f.numbers([widening.bits * (lane % members) for lane in range(self.lanes)])
            value = widening.code(f, words.shifted_right(shifts) & ((1 << widening.bits) - 1))
        f.store(apply(value), target, column * SIZES[F32])


def select_widened_rows(step: GatherStep, selector: Selector) -> list[Launch] | None:
    """The kernel of a Gather from a compressed table, None if it is not compressed or not selected by rows."""
    data, out = step.inputs[0], selector.array(step.output)
    found = None if data.source is None else compressed(data.source)
    if found is None or step.axis or len(data.shape) != 2 or out.strides[-1] != out.itemsize:
        return None
    form, lanes = compression_of(found, -1), selector.target.lanes
    if form is None or form.members > lanes or (form.group or data.shape[1]) % lanes:
        return None
    indices = selector.array(step.inputs[1])
    picked = merged(axes_of(indices.shape, out.strides[:-1], indices.strides))
    kernel = GatherWidened(lanes, form, tuple(picked), *data.shape, indices.itemsize)
    rows = selector.packed_constant(data, ("rows", form), lambda constant: _packed(kernel, constant))
    return [selector.launch(kernel, [rows, indices, out])]


def _packed(kernel: GatherWidened, constant: Constant) -> Array:
    """The rows of a table."""
    found, form = compressed(constant), kernel.form
    assert found is not None
    packed = weight_bytes(kernel.rows * kernel.pitch).reshape(kernel.rows, kernel.pitch)
    parts = [words_of(found, -1)]
    for factor, kind in ((found.scale, form.scale), (found.zero_point, form.zero)):
        if factor is not None and kind is not None:
            parts.append(factors_of(found, factor, -1).astype(DTYPES[kind]))
    at = 0
    for part in parts:
        own = np.ascontiguousarray(part).view(np.uint8).reshape(kernel.rows, -1)
        packed[:, at : at + own.shape[1]] = own
        at += own.shape[1]
    return packed.reshape(-1)
