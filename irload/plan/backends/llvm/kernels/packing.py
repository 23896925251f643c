"""The kernel that packs matrices of any strides into panels: computed operands in each run, constants when loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from math import prod
from typing import ClassVar

from irload.core.tensor import Array
from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.arguments import Arguments, unknown
from irload.plan.backends.llvm.axes import ANY, axes_of, size_of
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, SIZES, WORD
from irload.plan.backends.llvm.kernels.blocks import LineKernel
from irload.plan.backends.llvm.kernels.loops import lines_of, repeat
from irload.plan.backends.llvm.operands import load_lanes, load_lines
from irload.plan.backends.llvm.packing import Packing
from irload.plan.backends.llvm.shuffles import transposed
from irload.plan.backends.llvm.tuning import PACKED_ROWS
from irload.plan.ir.strides import Strided
from irload.record import record


@record()
class Pack(LineKernel):
    """Packs matrices [outer…, rows, columns] of f32, bf16 or f16. Pointers: from, to.

    A unit is a block of rows of a panel. `steps`: the strides of the rows and columns of a matrix in bytes. The code
    reads all sizes and strides, and the number of columns of panels that are not divided into tiles. Compiled in: the
    rest of the packing, the type, and whether rows or columns are contiguous.
    """

    packing: Packing
    shape: tuple[int, int]
    steps: tuple[int, int]
    source: str = F32

    prepares: ClassVar[bool] = True

    @staticmethod
    def of(packing: Packing, matrices: Array | Strided, source: str = F32) -> Pack:
        """The kernel for matrices as they are stored."""
        *outer, rows, columns = matrices.shape
        *strides, row, column = matrices.strides
        to = [prod(outer[k + 1 :]) * packing.nbytes(rows, columns) for k in range(len(outer))]
        return Pack(tuple(axes_of(outer, strides, to)), packing, (rows, columns), (row, column), source)

    @property
    def code(self) -> Pack:
        size = SIZES[self.source]
        steps = (ANY, size) if self.steps[1] == size else (size if self.steps[0] == size else ANY, ANY)
        columns = ANY if self.packing.tiles == 1 else self.packing.columns
        layout = replace(self.packing, columns=columns, beside=0)
        return replace(self, outer=(), packing=layout, shape=(ANY, ANY), steps=steps)

    @property
    def given_numbers(self) -> tuple[int, ...]:
        return (self._blocks, self.matrix // self._panels, *unknown(self, self.code))

    @property
    def _panels(self) -> int:
        return -(-self.shape[1] // self.packing.width)

    @property
    def _blocks(self) -> int:
        """The number of blocks of rows of a panel."""
        return -(-self.shape[0] // PACKED_ROWS)

    @property
    def matrix(self) -> int:
        """The bytes of a packed matrix."""
        return self.packing.nbytes(*self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all packed matrices."""
        return size_of(self.outer) * self.matrix

    @property
    def parts(self) -> int:
        return self._panels * self._blocks

    @property
    def cycles(self) -> float:
        size = SIZES[self.source]
        each = 1 / 8 if self.steps[1] == size else 1 / 4 if self.steps[0] == size else 2
        return self.nbytes / SIZES[self.packing.element] * each

    def read(self, arguments: Arguments) -> tuple[list[Int], Pack]:
        return arguments.integers(2), arguments.filled(self)

    def write_part(self, f: Function, given: tuple[list[Int], Pack], starts: list[Pointer], part: AnyInt) -> None:
        (blocks, nbytes), kernel = given
        panel, block = divmod(part, blocks)
        _Writer(f, self, kernel).write_block(starts[0], starts[1] + panel * nbytes, panel, block * PACKED_ROWS)


class _Writer:
    """Emits the code of a `Pack`. `given`: the kernel with run-time values in place of ANY."""

    def __init__(self, f: Function, kernel: Pack, given: Pack) -> None:
        self.f, self.kernel, self.size, self.packing = f, kernel, SIZES[kernel.source], given.packing
        (self.rows, self.columns), (self.row, self.column) = given.shape, given.steps

    def write_block(self, source: Pointer, target: Pointer, panel: AnyInt, begin: AnyInt) -> None:
        """Emit a block of the rows from `begin` on. `source`: the matrix; `target`: the packed panel."""
        f, end = self.f, self.f.minimum(begin + PACKED_ROWS, self.rows)
        target = target + begin * self.packing.row
        for v in f.range(0, self.packing.width // f.lanes):
            first = panel * self.packing.width + v * f.lanes
            copy = self._by_rows if self.kernel.steps[0] == ANY else self._by_squares
            copy(source, target + v * self.packing.vector(f.lanes), first, begin, end)

    def _by_squares(self, source: Pointer, target: Pointer, first: AnyInt, begin: AnyInt, end: AnyInt) -> None:
        """Pack a matrix whose columns are contiguous in memory: transpose squares of words in registers."""
        f, members = self.f, self.packing.word
        side = members * f.lanes
        lines = lines_of(f, source, self.column, first, self.columns)
        whole = begin + (end - begin) // side * side

        def square(row: AnyInt, *, partly: bool) -> None:
            rows = [row + k * f.lanes for k in range(members)]
            for k, word in enumerate(transposed(f, [read(line, rows, partly=partly) for line in lines])):
                short = partly and self.packing.depth < side
                with f.when(row + k * members < end) if short else nullcontext():
                    f.store(word, target, (row - begin) * self.packing.row + k * self.packing.columns * WORD)

        def read(line: Pointer, rows: Sequence[AnyInt], *, partly: bool) -> Vec:
            offsets = [(row * self.size, end - row if partly else None) for row in rows]
            parts = [load_lanes(f, line, at, count, self.kernel.source) for at, count in offsets]
            return parts[0] if members == 1 else bfloat16.rounded_pair(f, *parts).bitcast(f.vector)

        for row in f.range(begin, whole, side):
            square(row, partly=False)
        with f.when(whole < end):
            square(whole, partly=True)

    def _by_rows(self, source: Pointer, target: Pointer, first: AnyInt, begin: AnyInt, end: AnyInt) -> None:
        """Pack a matrix whose rows are contiguous in memory, or of any strides: copy or gather row by row."""
        f, element = self.f, self.kernel.source
        if self.kernel.steps[1] != ANY:
            line, count = source + first * self.size, self.columns - first
            whole, rest = (partial(load_lanes, f, line, count=n, element=element) for n in (None, count))
            copy = partial(self._copy_rows, target, begin, end)
            with f.when(count >= f.lanes):
                copy(whole)
            with f.otherwise():
                copy(rest)
        else:
            lines = lines_of(f, source, self.column, first, self.columns)
            self._copy_rows(target, begin, end, lambda offset: load_lines(f, lines, offset, element))

    def _copy_rows(self, target: Pointer, begin: AnyInt, end: AnyInt, read: Callable[[AnyInt], Vec]) -> None:
        """Copy the rows begin…end−1 in whole chunks. `read` loads a vector of the row at an offset in bytes."""
        f, depth, members = self.f, self.packing.depth, self.packing.word

        def row_of(row: AnyInt, *, partly: bool) -> Vec:
            value = read((f.minimum(row, end - 1) if partly else row) * self.row)
            return f.select(row < end, value, f.zero()) if partly else value

        def chunk(first: AnyInt, *, partly: bool) -> None:
            for index in repeat(f, 0, depth // members):
                values = [row_of(first + index * members + m, partly=partly) for m in range(members)]
                at = (first - begin) * self.packing.row + index * (self.packing.columns * WORD)
                if members == 1:
                    f.store(values[0], target, at)
                else:
                    f.store(bfloat16.pairs(f, *values), target, at)

        whole = begin + (end - begin) // depth * depth
        for first in f.range(begin, whole, depth):
            chunk(first, partly=False)
        if depth > 1:
            with f.when(whole < end):
                chunk(whole, partly=True)
