"""Results of a tile: its sums go through the epilogue from the registers that hold them to where results lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irload.plan.backends.llvm.builder import AnyInt, Function, Int, Pointer, Vec
from irload.plan.backends.llvm.elements import I32, SIZES
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernels.contraction.nest import Access
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.target import LINE
from irload.plan.backends.llvm.tuning import SEPARATE_EPILOGUE
from irload.plan.ir.expression import Expression
from irload.record import record


@record()
class TileResults:
    """y[row, channel] = epilogue(sum, operands). `y` and `operands` point to the tile in each tensor.

    `single`: the operands of which the tile reads one element. `row`: the bytes from the tile to a row of a tensor, y
    being tensor 0, if rows are not equally far apart. `count`: how many of the `channels` exist, if the code reads it.
    """

    epilogue: Expression
    rows: int
    channels: int
    y: tuple[Pointer, Access]
    operands: Sequence[tuple[Pointer, Access]]
    single: Sequence[int]
    row: Callable[[int, AnyInt], AnyInt] | None = None
    count: Int | None = None

    def ask(self, f: Function) -> None:
        """Prefetch the cache lines of the results, and of operands of their size, before the sums."""
        for k, (pointer, access) in enumerate((self.y, *self.operands)):
            size = SIZES[access.element]
            if access.column and access.channel == size:
                for r in range(self.rows):
                    row = self._row(k, access, r)
                    for at in range(0, size * self.channels, LINE):
                        f.prefetch(pointer, row + at, to_write=k == 0)

    def write(self, f: Function, sums: Sequence[Vec]) -> None:
        """Store the results of sums: vectors row by row."""
        fixed = {k: read(f, self.operands[k][0], 0, 0, f.lanes, self.operands[k][1].element) for k in self.single}
        if expression_cycles(self.epilogue) < SEPARATE_EPILOGUE:
            self._finish(f, range(self.rows), sums, fixed)
            return
        width = len(self._lanes(f)) * f.target.bytes
        memory = f.local(self.rows * width)
        for k, value in enumerate(sums):
            f.store(value, memory, k * f.target.bytes)
        for r in f.range(0, self.rows):
            place = memory + r * width
            own = [
                f.load(place, at, align=f.target.bytes, element=sums[0].element)
                for at in range(0, width, f.target.bytes)
            ]
            self._finish(f, [r], own, fixed)

    def write_part(self, f: Function, part: Int, parts: int, sums: Callable[[list[Vec]], list[Vec]]) -> None:
        """Add one part of the sums to the earlier parts, which are stored in y; the last part becomes the results."""
        (pointer, access), lanes = self.y, self._lanes(f)
        start = [f.zero()] * (self.rows * len(lanes))
        for _ in f.range(0, f.minimum(part, 1), 1, start):
            start[:] = [
                read(f, pointer, self._offset(f, 0, access, r, v), access.channel, count)
                for r in range(self.rows)
                for v, count in enumerate(lanes)
            ]
        found = sums(start)
        last = f.equal(part, parts - 1)
        with f.when(last):
            self.write(f, found)
        with f.otherwise():
            for k, value in enumerate(found):
                self._store(f, value, *divmod(k, len(lanes)))

    def _lanes(self, f: Function) -> Sequence[AnyInt]:
        """The channels of each vector of a row."""
        if self.count is not None:
            return [f.minimum(self.count - first, f.lanes) for first in range(0, self.channels, f.lanes)]
        return [min(f.lanes, self.channels - first) for first in range(0, self.channels, f.lanes)]

    def _finish(self, f: Function, rows: Sequence[AnyInt], sums: Sequence[Vec], fixed: Mapping[int, Vec]) -> None:
        """Store the results of these rows. `fixed`: the elements of `single` operands."""
        left = iter(sums)
        same: dict[tuple[int, AnyInt], Vec] = {}
        for r in rows:
            for v, count in enumerate(self._lanes(f)):
                values = [next(left)]
                if values[0].element == I32 != self.y[1].element:
                    values[0] = values[0].converted()
                for k, (pointer, access) in enumerate(self.operands):
                    if k in fixed:
                        values.append(fixed[k])
                        continue
                    offset = self._offset(f, 1 + k, access, r, v)
                    if (k, offset) not in same:
                        same[k, offset] = read(f, pointer, offset, access.channel, count, access.element)
                    values.append(same[k, offset])
                (result,) = evaluate(self.epilogue, values)
                self._store(f, result, r, v)

    def _store(self, f: Function, result: Vec, r: AnyInt, v: int) -> None:
        pointer, access = self.y
        place = self._offset(f, 0, access, r, v)
        write(f, result, pointer, place, access.channel, self._lanes(f)[v], access.element)

    def _row(self, k: int, access: Access, r: AnyInt) -> AnyInt:
        """The bytes from a tile to its row `r` in tensor `k`."""
        return r * access.column if self.row is None else self.row(k, r)

    def _offset(self, f: Function, k: int, access: Access, r: AnyInt, v: int) -> AnyInt:
        """The bytes to vector `v` of that row."""
        return self._row(k, access, r) + v * f.lanes * access.channel
