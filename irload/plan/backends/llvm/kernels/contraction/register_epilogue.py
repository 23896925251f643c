"""The epilogue of a register tile: applied to the accumulators in registers; its results are stored in y."""

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
class RegisterEpilogue:
    """y[row, channel] = epilogue(sum, operands). `y` and `operands` point to the tile in each tensor.

    `single`: the indices of operands of which the tile reads one element. `row`: a function from a tensor (0 is y) and
    a row to the offset of the row in bytes, if rows have no constant stride. `count`: the number of `channels` that
    exist, if the code reads it.
    """

    epilogue: Expression
    rows: int
    channels: int
    y: tuple[Pointer, Access]
    operands: Sequence[tuple[Pointer, Access]]
    single: Sequence[int]
    row: Callable[[int, AnyInt], AnyInt] | None = None
    count: Int | None = None

    def prefetch(self, f: Function) -> None:
        """Prefetch the cache lines of y, and of operands that are not broadcast, before the sums are computed."""
        for k, (pointer, access) in enumerate((self.y, *self.operands)):
            size = SIZES[access.element]
            if access.column and access.channel == size:
                for r in range(self.rows):
                    row = self._row(k, access, r)
                    for at in range(0, size * self.channels, LINE):
                        f.prefetch(pointer, row + at, to_write=k == 0)

    def write(self, f: Function, sums: Sequence[Vec]) -> None:
        """Apply the epilogue and store the results. `sums`: the vectors of the tile, row by row.

        For a long epilogue, the sums are stored in memory, and the epilogue is a loop over their rows.
        """
        scalars = {k: read(f, self.operands[k][0], 0, 0, f.lanes, self.operands[k][1].element) for k in self.single}
        if expression_cycles(self.epilogue) < SEPARATE_EPILOGUE:
            self._finish(f, range(self.rows), sums, scalars)
            return
        width = len(self._lanes(f)) * f.target.bytes
        memory = f.local(self.rows * width)
        for k, value in enumerate(sums):
            f.store(value, memory, k * f.target.bytes)
        for r in f.range(0, self.rows):
            row = memory + r * width
            totals = [
                f.load(row, at, align=f.target.bytes, element=sums[0].element) for at in range(0, width, f.target.bytes)
            ]
            self._finish(f, [r], totals, scalars)

    def write_part(self, f: Function, part: Int, parts: int, sums: Callable[[list[Vec]], list[Vec]]) -> None:
        """Add a part of the sums to the partial sums stored in y; after the last part, apply the epilogue."""
        (pointer, access), lanes = self.y, self._lanes(f)
        start = [f.zero()] * (self.rows * len(lanes))
        for _ in f.range(0, f.minimum(part, 1), 1, start):
            start[:] = [
                read(f, pointer, self._offset(f, 0, access, r, v), access.channel, count)
                for r in range(self.rows)
                for v, count in enumerate(lanes)
            ]
        totals = sums(start)
        last = f.equal(part, parts - 1)
        with f.when(last):
            self.write(f, totals)
        with f.otherwise():
            for k, value in enumerate(totals):
                self._store(f, value, *divmod(k, len(lanes)))

    def _lanes(self, f: Function) -> Sequence[AnyInt]:
        """The channels of each vector of a row."""
        if self.count is not None:
            return [f.minimum(self.count - first, f.lanes) for first in range(0, self.channels, f.lanes)]
        return [min(f.lanes, self.channels - first) for first in range(0, self.channels, f.lanes)]

    def _finish(self, f: Function, rows: Sequence[AnyInt], sums: Sequence[Vec], scalars: Mapping[int, Vec]) -> None:
        """Store the results of these rows. `scalars`: the elements of `single` operands, in all lanes."""
        remaining = iter(sums)
        loaded: dict[tuple[int, AnyInt], Vec] = {}
        for r in rows:
            for v, count in enumerate(self._lanes(f)):
                values = [next(remaining)]
                if values[0].element == I32 != self.y[1].element:
                    values[0] = values[0].converted()
                for k, (pointer, access) in enumerate(self.operands):
                    if k in scalars:
                        values.append(scalars[k])
                        continue
                    offset = self._offset(f, 1 + k, access, r, v)
                    if (k, offset) not in loaded:
                        loaded[k, offset] = read(f, pointer, offset, access.channel, count, access.element)
                    values.append(loaded[k, offset])
                (result,) = evaluate(self.epilogue, values)
                self._store(f, result, r, v)

    def _store(self, f: Function, result: Vec, r: AnyInt, v: int) -> None:
        pointer, access = self.y
        offset = self._offset(f, 0, access, r, v)
        write(f, result, pointer, offset, access.channel, self._lanes(f)[v], access.element)

    def _row(self, k: int, access: Access, r: AnyInt) -> AnyInt:
        """The offset in bytes of row `r` of the tile in tensor `k`."""
        return r * access.column if self.row is None else self.row(k, r)

    def _offset(self, f: Function, k: int, access: Access, r: AnyInt, v: int) -> AnyInt:
        """The offset in bytes of vector `v` of row `r` of the tile in tensor `k`."""
        return self._row(k, access, r) + v * f.lanes * access.channel
