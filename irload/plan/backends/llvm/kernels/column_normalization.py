"""Normalisation across the axis on which vectors lie: of each channel, or of groups of neighbouring ones."""

from __future__ import annotations

from collections.abc import Callable
from math import lcm, prod

from irload.plan.backends.llvm.axes import Axis, offsets
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.spans import added, counts, moved, nested
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.expression import Expression
from irload.record import record

TOGETHER = 4
"""Vectors that go through all positions at the same time."""
WIDE = 128
"""Columns of a band that need not be exceeded to make it fit to cache lines."""


@record()
class ColumnNormalize(Kernel):
    """(x − mean) / √(variance + eps) over the inner axes and groups of columns, then the epilogue.

    Without `center`: x / √(mean of x² + eps). `outside`: eps is added to the root. Pointers: to, from, operands. A unit
    is a band of columns, whole groups.
    """

    lanes: int
    outer: tuple[Axis, ...]
    columns: Axis
    group: int
    inner: tuple[Axis, ...]
    eps: float
    center: bool
    outside: bool
    epilogue: Expression

    @property
    def count(self) -> int:
        return prod(axis.size for axis in self.outer) * self._bands

    @property
    def cycles(self) -> float:
        each = 6 + 2 * self.epilogue.operands + expression_cycles(self.epilogue)
        return prod(axis.size for axis in (*self.outer, self.columns, *self.inner)) / 8 * each

    @property
    def scratch(self) -> int:
        return 2 * self._pitch

    @property
    def _width(self) -> int:
        """Columns of a band."""
        fitting = lcm(self.group, 16)
        width = fitting if fitting <= max(WIDE, self.group) else -(-16 // self.group) * self.group
        return min(width, self.columns.size)

    @property
    def _bands(self) -> int:
        return -(-self.columns.size // self._width)

    @property
    def _pitch(self) -> int:
        """Bytes of one number for each column of a band."""
        return -(-self._width // self.lanes) * self.lanes * 4

    @property
    def _tensors(self) -> int:
        return 1 + self.epilogue.operands

    def write(self, function: Function) -> None:
        f = function
        pointers = [f.load_pointer(f["arguments"], 8 * k) for k in range(self._tensors)]
        rest = self.columns.size - (self._bands - 1) * self._width

        def unit(index: Value, _: list[Value]) -> None:
            line, band = f.divmod(index, self._bands)
            places = moved(f, pointers, offsets(f, line, self.outer, self._tensors))
            places = moved(f, places, [f.multiply(band, self._width * s) for s in self.columns.strides])

            def part(size: int) -> Callable[[], None]:
                return lambda: self._write_band(f, places, size)

            if self._bands > 1 and rest < self._width:
                f.when(f.compare("eq", band, self._bands - 1), part(rest), part(self._width))
            else:
                part(rest)()

        f.loop(f["begin"], f["end"], 1, unit)

    def _write_band(self, f: Function, places: list[Value], size: int) -> None:
        """A band of `size` columns: their means, their variances and their results, for some vectors at a time."""
        means, variances = f["scratch"], f.at(f["scratch"], self._pitch)
        every = counts(size, self.lanes)
        parts = [_Part(self.lanes, k, every[k : k + TOGETHER]) for k in range(0, len(every), TOGETHER)]
        if self.center:
            for part in parts:
                part.store(f, means, self._means(f, places, part, None))
            self._write_group_sums(f, means, size)
        centers = [part.load(f, means) if self.center else [Vector(f, f.zero())] * len(part.counts) for part in parts]
        for part, center in zip(parts, centers, strict=True):
            part.store(f, variances, self._means(f, places, part, center))
        self._write_group_sums(f, variances, size)
        for part, center in zip(parts, centers, strict=True):
            factors = [factor(v, self.eps, outside=self.outside) for v in part.load(f, variances)]
            self._write_results(f, places, part, center, factors)

    def _means(self, f: Function, places: list[Value], part: _Part, center: list[Vector] | None) -> list[Vector]:
        """Of each column the sum of x, or of (x − center)², divided by the elements of a group."""
        stride = self.columns.strides[1]

        def term(at: list[Value], totals: list[Value]) -> list[Value]:
            found: list[Vector] = []
            for k, (column, count) in enumerate(zip(part.columns, part.counts, strict=True)):
                x, total = Vector(f, read(f, at[1], column * stride, stride, count)), Vector(f, totals[k])
                difference = x if center is None else x - center[k]
                found.append(total + x if center is None else difference.times_plus(difference, total))
            return [each.value for each in found]

        start = [f.zero()] * len(part.counts)
        totals = added(f, self.inner, places, term, start, lambda a, b: f.arithmetic("fadd", a, b))
        number = self.group * prod(axis.size for axis in self.inner)
        return [Vector(f, total) / number for total in totals]

    def _write_results(
        self, f: Function, places: list[Value], part: _Part, centers: list[Vector], factors: list[Vector]
    ) -> None:
        strides = self.columns.strides

        def results(at: list[Value], _: list[Value]) -> list[Value]:
            for column, count, center, factor in zip(part.columns, part.counts, centers, factors, strict=True):
                x, *operands = (read(f, p, column * s, s, count) for p, s in zip(at[1:], strides[1:], strict=True))
                normal = (Vector(f, x) - center) * factor
                (value,) = evaluate(f, self.epilogue, [normal.value, *operands])
                write(f, value, at[0], column * strides[0], strides[0], count)
            return []

        nested(f, self.inner, places, results, [])

    def _write_group_sums(self, f: Function, numbers: Value, size: int) -> None:
        """Replace the numbers of each group by their sum."""
        if self.group == 1:
            return

        def group(index: Value, _: list[Value]) -> None:
            first = f.at(numbers, f.multiply(index, 4 * self.group))

            def add(k: Value, total: list[Value]) -> list[Value]:
                return [f.arithmetic("fadd", total[0], f.load_scalar(first, f.multiply(k, 4)))]

            (total,) = f.loop(0, self.group, 1, add, [Value("0.0", "float")])
            f.loop(0, self.group, 1, lambda k, _: f.store_scalar(total, first, f.multiply(k, 4)))

        f.loop(0, size // self.group, 1, group)


@record()
class _Part:
    """Vectors of a band that go together, from the vector `first` on; their counts where they are not whole."""

    lanes: int
    first: int
    counts: list[int | None]

    @property
    def columns(self) -> list[int]:
        """The first column of each vector."""
        return [(self.first + k) * self.lanes for k in range(len(self.counts))]

    def load(self, f: Function, numbers: Value) -> list[Vector]:
        """Numbers of columns, from scratch."""
        return [Vector(f, f.load(numbers, 4 * column)) for column in self.columns]

    def store(self, f: Function, numbers: Value, values: list[Vector]) -> None:
        """Keep numbers of columns in scratch."""
        for column, value in zip(self.columns, values, strict=True):
            f.store(value.value, numbers, 4 * column)


def factor(variance: Vector, eps: float, *, outside: bool) -> Vector:
    """What numbers of this variance are multiplied by."""
    return 1.0 / (variance.unary("sqrt") + eps if outside else (variance + eps).unary("sqrt"))
