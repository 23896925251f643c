"""The base classes of kernels that work line by line, or row by row with the loops along rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from irload.core.size import largest, smallest
from irload.plan.backends.llvm.arguments import Arguments, moved, unknown, walk_lines
from irload.plan.backends.llvm.axes import ANY, Axis, size_of, table
from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import unrolled
from irload.plan.backends.llvm.tuning import ROW_BLOCK
from irload.record import record


@record()
class LineKernel(Kernel):
    """A kernel whose units are parts of lines. The code reads the axes between lines, `outer`.

    Pointers: `tensors` tensors that have these axes, then `others`.
    """

    outer: tuple[Axis, ...]

    tensors: ClassVar[int] = 2
    others: ClassVar[int] = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self.given_numbers, self.parts, *table(self.outer, self.tensors))

    @property
    def given_numbers(self) -> tuple[int, ...]:
        """The numbers that `read` reads."""
        return tuple(unknown(self, self.code))

    @property
    def parts(self) -> int:
        """The parts of a line."""
        return 1

    @property
    def count(self) -> int:
        return size_of(self.outer) * self.parts

    def read(self, arguments: Arguments) -> Any:
        """Read the arguments of `given_numbers`: by default, the kernel with run-time values in place of ANY."""
        return arguments.filled(self)

    def write(self, f: Function) -> None:
        arguments, tensors = Arguments(f), self.tensors
        pointers, given = arguments.pointers(tensors + self.others), self.read(arguments)
        parts, lines = arguments.integer(), arguments.table(tensors)
        for starts, part in walk_lines(f, parts, lines, pointers[:tensors]):
            self.write_part(f, given, [*starts, *pointers[tensors:]], part)

    @abstractmethod
    def write_part(self, f: Function, given: Any, starts: list[Pointer], part: AnyInt) -> None:
        """Emit a part of a line. `given`: the result of `read`; `starts`: the line in each tensor, other pointers."""


@record(eq=False)
class Row:
    """A row in a function: the addresses of its first element in each tensor, and the strides of its elements."""

    f: Function
    addresses: list[Pointer]
    strides: tuple[AnyInt, ...]

    def at(self, position: AnyInt) -> list[Pointer]:
        """The address of an element in each tensor."""
        return moved(self.addresses, [position * stride for stride in self.strides])


@record()
class BlockKernel(Kernel):
    """A kernel that processes rows along the last of `axes`. Its code reads all sizes except the length of short rows.

    A unit is a block of neighbouring rows, or a chunk of a long row: about `block` positions.
    """

    lanes: int
    axes: tuple[Axis, ...]

    times: ClassVar[int] = 4
    """Vectors per iteration of a loop along a row, which is unrolled."""

    @property
    def code(self) -> BlockKernel:
        return replace(self, axes=(self.row,))

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self.given_numbers, *self._division[1])

    @property
    def count(self) -> int:
        return self._division[0]

    @property
    def given_numbers(self) -> tuple[int, ...]:
        """The numbers that `read` reads."""
        return tuple(unknown(self, replace(self.code, axes=())))

    @property
    def width(self) -> int:
        """Positions per vector."""
        return self.lanes

    @property
    def has_tail(self) -> bool:
        """False if rows of any length consist of whole vectors."""
        return True

    @property
    def block(self) -> int:
        """Positions per unit, approximately."""
        return ROW_BLOCK

    @property
    @abstractmethod
    def row(self) -> Axis:
        """The axis of rows in the key of the code."""

    def read(self, arguments: Arguments) -> Any:
        """Read the arguments of `given_numbers`: by default, the kernel with run-time values in place of ANY."""
        return arguments.filled(replace(self, axes=()))

    def begin(self, row: Row, given: Any) -> Any:
        """Emit the start of a row. `given`: the result of `read`. The result is passed to `write_vector`."""
        return given

    @abstractmethod
    def write_vector(self, row: Row, given: Any, vector: AnyInt, count: AnyInt | None) -> None:
        """Emit vector number `vector` of a row. `count`: its elements if it is partial, else None."""

    @property
    def _division(self) -> tuple[int, tuple[int, ...]]:
        """The number of units, and the numbers that describe them."""
        *outer, row = self.axes
        alone = Axis(1, (0,) * len(row.strides))
        (vectors, rest), chunk = divmod(row.size, self.width), self.block // self.width
        if vectors > chunk:  # a line is a row, its parts are chunks
            rows, height, down, right, parts = alone, 1, 0, chunk, -(-vectors // chunk)
        else:  # a line is all neighbouring rows, its parts are blocks of them
            rows, chunk = outer.pop() if outer else alone, largest(1, vectors)
            height = smallest(largest(1, self.block // row.size), rows.size)
            down, right, parts = height, 0, -(-rows.size // height)
        tail = (vectors + 1) * smallest(rest, 1) - 1  # −1: no partial vector
        length = (right, chunk, vectors, tail, rest) if self.row.size == ANY else ()
        strides = unknown(row.strides, self.row.strides)
        lines = table(outer, len(row.strides))
        return size_of(outer) * parts, (parts, down, height, rows.size, *length, *strides, *rows.strides, *lines)

    def write(self, f: Function) -> None:
        arguments, key = Arguments(f), self.row
        pointers = arguments.pointers(len(key.strides))
        given = self.read(arguments)
        parts, down, height, rows = arguments.integers(4)
        whole = key.size // self.width
        known = [0, whole, whole, whole, key.size % self.width]
        right, chunk, vectors, tail, rest = arguments.integers(5) if key.size == ANY else known
        along = arguments.filled(key.strides)
        between = arguments.integers(len(pointers))
        lines = arguments.table(len(pointers))
        for starts, number in walk_lines(f, parts, lines, pointers):
            first, top = number * right, number * down
            last, bottom = f.minimum(first + chunk, vectors), f.minimum(top + height, rows)
            for at in f.range(top, bottom):
                row = Row(f, moved(starts, [at * stride for stride in between]), along)
                of_row = self.begin(row, given)
                for k, _ in unrolled(f, first, last, self.times):
                    self.write_vector(row, of_row, k, None)
                if isinstance(rest, Int) and self.has_tail:
                    with f.when(f.equal(last, tail)):
                        self.write_vector(row, of_row, vectors, rest)
                elif rest and self.has_tail:
                    self.write_vector(row, of_row, vectors, rest)
