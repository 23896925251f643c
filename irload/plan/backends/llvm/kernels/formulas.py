"""The kernels of reductions, softmax and normalization, with vectors along rows or across columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from irload.core.size import applied
from irload.plan.backends.llvm.arguments import Arguments, float_word, moved, unknown
from irload.plan.backends.llvm.axes import ANY, Axis, any_sizes, row_key, size_of, strides_key
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.blocks import BlockKernel, LineKernel, Row
from irload.plan.backends.llvm.kernels.positions import ColumnPositions, Positions, RowPositions, counts, partial_counts
from irload.plan.backends.llvm.tuning import COLUMN_BLOCK, COLUMN_VECTORS
from irload.record import record


@record()
class Formula(ABC):
    """A function of all elements that share a result, such as a sum. Tensor 0 is the result, tensor 1 the data."""

    name: ClassVar[str]
    vectors: ClassVar[int] = COLUMN_VECTORS
    """Vectors of columns that are computed at once: enough independent operations to hide latencies."""
    block: ClassVar[int] = COLUMN_BLOCK
    """The number of f32 that a unit reads if vectors are across columns."""

    @property
    @abstractmethod
    def elements(self) -> Sequence[str]:
        """The stored type of each tensor."""

    @property
    @abstractmethod
    def cycles(self) -> float:
        """An estimate for 8 elements."""

    def parameter(self, size: int) -> float:
        """The parameter that the code reads, for `size` elements: by default their number."""
        return size

    def parameter_word(self, size: int) -> int:
        """`parameter` as a word of `Kernel.numbers`; a Deferred if the size is symbolic."""
        return applied(lambda count: float_word(self.parameter(count)), size)

    @abstractmethod
    def write(self, f: Function, positions: Positions, parameter: Vec) -> None:
        """Write the code for all elements of a row, or of some columns."""


@record()
class RowFormula(LineKernel):
    """A `Formula` of all positions of the inner axes, for each position of `outer` and `rows`.

    Vectors are along the last inner axis. Pointers: the tensors of the formula. A unit is one of `rows`. The code reads
    all sizes except for short rows.
    """

    rows: Axis
    lanes: int
    inner: tuple[Axis, ...]
    how: Formula

    @property
    def name(self) -> str:
        return f"Row{self.how.name}"

    @property
    def code(self) -> RowFormula:
        *axes, row = self.inner
        key = row_key(row, self.lanes, [SIZES[e] for e in self.how.elements])
        rows = Axis(0, (ANY,) * self.tensors)
        return replace(self, outer=(), rows=rows, inner=(*any_sizes(axes), key))

    @property
    def tensors(self) -> int:
        return len(self.how.elements)

    @property
    def given_numbers(self) -> tuple[int, ...]:
        return (self.how.parameter_word(size_of(self.inner)), *unknown(self, self.code))

    @property
    def parts(self) -> int:
        return self.rows.size

    @property
    def cycles(self) -> float:
        return self.count * (60 + size_of(self.inner) / 8 * self.how.cycles)

    def read(self, arguments: Arguments) -> tuple[Vec, RowFormula]:
        (parameter,) = arguments.vectors(1)
        return parameter, arguments.filled(self)

    def write_part(self, f: Function, given: tuple[Vec, RowFormula], starts: list[Pointer], part: AnyInt) -> None:
        parameter, kernel = given
        row = moved(starts, [part * stride for stride in kernel.rows.strides])
        self.how.write(f, RowPositions(f, kernel.inner, row), parameter)


@record()
class ColumnFormula(BlockKernel):
    """A `Formula` of all positions of the inner axes, for each position of `axes`. Vectors are along the last axis.

    Pointers: the tensors of the formula. `band`: columns that are computed together. `group`: neighbouring columns that
    share a result; if more than one, bands consist of whole groups, and the columns of whole bands. The code reads all
    other sizes.
    """

    inner: tuple[Axis, ...]
    how: Formula
    band: int
    group: int = 1

    times: ClassVar[int] = 1

    @property
    def name(self) -> str:
        return f"Column{self.how.name}"

    @property
    def code(self) -> ColumnFormula:
        return replace(self, axes=(self.row,), inner=any_sizes(self.inner))

    @property
    def given_numbers(self) -> tuple[int, ...]:
        parameter = self.how.parameter_word(self.group * size_of(self.inner))
        return (parameter, *unknown(self.inner, self.code.inner))

    @property
    def cycles(self) -> float:
        return size_of(self.axes) * size_of(self.inner) / 8 * self.how.cycles

    @property
    def scratch(self) -> int:
        return -(-self.band // self.lanes) * self.lanes * 4 if self.group > 1 else 0

    @property
    def width(self) -> int:
        return self.band

    @property
    def has_tail(self) -> bool:
        return self.group == 1

    @property
    def block(self) -> int:
        return max(self.width, self.how.block // size_of(self.inner))

    @property
    def row(self) -> Axis:
        return Axis(ANY, strides_key(self.axes[-1], [SIZES[e] for e in self.how.elements]))

    def read(self, arguments: Arguments) -> tuple[Vec, tuple[Axis, ...]]:
        (parameter,) = arguments.vectors(1)
        return parameter, arguments.filled(self.inner)

    def write_vector(self, row: Row, given: tuple[Vec, tuple[Axis, ...]], vector: AnyInt, count: AnyInt | None) -> None:
        f, (parameter, inner), begin = row.f, given, row.at(vector * self.width)
        sizes = counts(self.width, f.lanes) if count is None else partial_counts(f, self.band // f.lanes, count)
        columns = (row.strides, sizes, self.how.vectors, self.group, f["scratch"])
        self.how.write(f, ColumnPositions(f, inner, begin, *columns), parameter)


def formula_kernel(lanes: int, outer: Sequence[Axis], inner: Sequence[Axis], how: Formula) -> Kernel:
    """The kernel with vectors along the axis of the data with the smallest stride."""
    inner = inner or [Axis(1, tuple(SIZES[element] for element in how.elements))]
    nearest = min(abs(axis.strides[1]) for axis in inner)
    nearer = [axis for axis in outer if 0 < abs(axis.strides[1]) < nearest]
    if not nearer:
        *lines, rows = outer or [Axis(1, (0,) * len(how.elements))]
        return RowFormula(tuple(lines), rows, lanes, tuple(inner), how)
    columns = min(nearer, key=lambda axis: abs(axis.strides[1]))
    rest = [axis for axis in outer if axis is not columns]
    vectors = max(1, min(how.vectors, columns.size // lanes))  # bands of whole vectors
    return ColumnFormula(lanes, (*rest, columns), tuple(inner), how, vectors * lanes)
