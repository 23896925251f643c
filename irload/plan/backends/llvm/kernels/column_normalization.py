"""Normalization across the axis on which vectors lie: of each column, or of groups of neighbouring ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from irload.plan.backends.llvm.arguments import Arguments, float_word, moved, walk_lines
from irload.plan.backends.llvm.axes import Axis, Loop, any_sizes, numbers, size_of, strides_key, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.columns import Columns, added, counts
from irload.plan.backends.llvm.kernels.normalization import Formula
from irload.plan.backends.llvm.kernels.spans import nested
from irload.plan.backends.llvm.tuning import COLUMN_VECTORS, NORMALIZED_COLUMNS
from irload.record import record


@record()
class ColumnNormalize(Kernel):
    """Normalizes the inner axes and groups of columns. Pointers: to, from, operands of the epilogue.

    A unit is a band of columns, whole groups. The code reads all sizes; the widths of a band and of the last one are
    compiled in.
    """

    lanes: int
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    how: Formula
    columns: Axis
    group: int

    @property
    def code(self) -> ColumnNormalize:
        return replace(self, outer=(), inner=any_sizes(self.inner), columns=self._key)

    @property
    def numbers(self) -> tuple[int, ...]:
        (key,) = keys = [self._key]
        columns = numbers([replace(self.columns, size=key.size)], keys)
        inner = numbers(self.inner, any_sizes(self.inner))
        number = float_word(self.group * size_of(self.inner))
        return (number, self._bands, *inner, *columns, *table(self.outer, self.how.tensors))

    @property
    def count(self) -> int:
        return size_of(self.outer) * self._bands

    @property
    def cycles(self) -> float:
        return size_of((*self.outer, self.columns, *self.inner)) / 8 * self.how.cycles

    @property
    def scratch(self) -> int:
        return 2 * self.pitch

    @property
    def _key(self) -> Axis:
        """The columns of one band, or of a whole one and the last one."""
        size = self.columns.size - max(self._bands - 2, 0) * self._width
        return Axis(size, strides_key(self.columns, [SIZES[F32]] * self.how.tensors))

    @property
    def _width(self) -> int:
        """Columns of a band."""
        fitting = lcm(self.group, 16)
        width = fitting if fitting <= max(NORMALIZED_COLUMNS, self.group) else -(-16 // self.group) * self.group
        return min(width, self.columns.size)

    @property
    def _bands(self) -> int:
        return -(-self.columns.size // self._width)

    @property
    def pitch(self) -> int:
        """Bytes of one number for each column of a band."""
        return -(-self._width // self.lanes) * self.lanes * 4

    def write(self, function: Function) -> None:
        f, given, tensors = function, Arguments(function), self.how.tensors
        pointers, (number,) = given.pointers(tensors), given.vectors(1)
        bands, inner = given.integer(), given.loops(any_sizes(self.inner))
        (columns,) = given.loops([self._key])
        strides, outer = columns.strides, given.table(tensors)
        rest = self.columns.size - (self._bands - 1) * self._width

        def band(starts: list[Pointer], at: AnyInt) -> None:
            places = moved(starts, [at * self._width * s for s in strides])

            def part(size: int) -> Callable[[], None]:
                every = counts(size, self.lanes)
                parts = [
                    Columns(self.lanes, strides, every[k : k + COLUMN_VECTORS], k * self.lanes)
                    for k in range(0, len(every), COLUMN_VECTORS)
                ]
                return lambda: _Band(f, self, inner, number, parts, size // self.group).write(places)

            if rest < self._width:
                f.when(f.equal(at, bands - 1), part(rest), part(self._width))
            else:
                part(rest)()

        walk_lines(f, bands, outer, pointers, band)


@record()
class _Band:
    """Writes the code of a band: means, variances and results, for some vectors of columns at a time.

    `number`: the elements of a group.
    """

    f: Function
    kernel: ColumnNormalize
    inner: Sequence[Loop]
    number: Vec
    parts: Sequence[Columns]
    groups: int

    def write(self, places: list[Pointer]) -> None:
        """Write it. `places`: the first column of each tensor."""
        f, how = self.f, self.kernel.how
        zeros = [[f.zero()] * len(part.counts) for part in self.parts]
        centers = self._means(f["scratch"], places, None) if how.center else zeros
        variances = self._means(f["scratch"] + self.kernel.pitch, places, centers)
        for part, center, variance in zip(self.parts, centers, variances, strict=True):
            self._write_results(places, part, center, [how.factor(v) for v in variance])

    def _means(
        self, scratch: Pointer, places: list[Pointer], centers: Sequence[Sequence[Vec]] | None
    ) -> list[list[Vec]]:
        """The means of x or of (x − center)² over groups, for the columns of each part."""
        f = self.f
        for k, part in enumerate(self.parts):
            totals = self._sums(places, part, [None] * len(part.counts) if centers is None else centers[k])
            for total, position in zip(totals, part.positions, strict=True):
                f.store(total / self.number, scratch, 4 * position)
        self._add_groups(scratch)
        return [[f.load(scratch, 4 * position) for position in part.positions] for part in self.parts]

    def _sums(self, places: list[Pointer], part: Columns, centers: Sequence[Vec | None]) -> list[Vec]:
        f = self.f

        def term(at: list[Pointer], totals: list[Vec]) -> list[Vec]:
            values = zip(part.read(f, at, 1), centers, totals, strict=True)
            return [self.kernel.how.term(x, center, total) for x, center, total in values]

        zeros = [f.zero()] * len(part.counts)
        return added(f, self.inner, places, term, zeros, lambda a, b: a + b)

    def _add_groups(self, columns: Pointer) -> None:
        """Replace the numbers of each group of columns by their sum."""
        f, group = self.f, self.kernel.group
        if group == 1:
            return

        def each(index: Int, _: list[Any]) -> None:
            first = columns + index * (4 * group)

            def add(k: Int, total: list[Vec]) -> list[Vec]:
                return [total[0] + f.load_scalar(first, k * 4)]

            (total,) = f.loop(0, group, 1, add, [f.constant("0.0", "float")])
            f.loop(0, group, 1, lambda k, _: f.store_scalar(total, first, k * 4))

        f.loop(0, self.groups, 1, each)

    def _write_results(
        self, places: list[Pointer], part: Columns, centers: Sequence[Vec], factors: Sequence[Vec]
    ) -> None:
        f, how = self.f, self.kernel.how

        def results(at: list[Pointer], _: list[Any]) -> list[Vec]:
            x, *operands = (part.read(f, at, tensor) for tensor in range(1, how.tensors))
            vectors = zip(x, centers, factors, zip(*operands, strict=True) if operands else [()] * len(x), strict=True)
            part.write(f, [how.result(f, x, c, s, [*others]) for x, c, s, others in vectors], at, 0)
            return []

        nested(f, self.inner, places, results, [])
