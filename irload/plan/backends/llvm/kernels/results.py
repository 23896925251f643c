"""Results of a tile: its sums go through the epilogue from the registers that hold them to where results lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.elements import SIZES
from irload.plan.backends.llvm.expressions import evaluate, expression_cycles
from irload.plan.backends.llvm.kernels.access import Access
from irload.plan.backends.llvm.operands import read, write
from irload.plan.backends.llvm.target import LINE
from irload.plan.ir.expression import Expression
from irload.record import record

APART = 12
"""Cycles from which an epilogue is a loop over the sums, once stored, so that its code is written once, not for each.

GELU on a tile of 14 × 2 vectors takes LLVM 80 ms otherwise, and a hundredth of the product's time less.
"""


@record()
class TileResults:
    """y[row, channel] = epilogue(sum, operands). `y` and `operands` point to the tile's own part of each tensor."""

    epilogue: Expression
    rows: int
    channels: int
    y: tuple[Value, Access]
    operands: Sequence[tuple[Value, Access]]

    def ask(self, f: Function) -> None:
        """Ask for the cache lines of the results and of operands as large as they, which arrive while sums are made."""
        for tensor in (self.y, *self.operands):
            pointer, access = tensor
            size = SIZES[access.element]
            if access.column and access.channel == size:
                for r in range(self.rows):
                    for at in range(0, size * self.channels, LINE):
                        f.prefetch(pointer, r * access.column + at, to_write=tensor is self.y)

    def write(self, f: Function, sums: Sequence[Value]) -> None:
        """Make the results of sums: vectors in the order row by row."""
        if expression_cycles(self.epilogue) < APART:
            self._finish(f, range(self.rows), sums)
            return
        width = len(self._lanes(f)) * f.target.bytes
        memory = f.local(self.rows * width)
        for k, value in enumerate(sums):
            f.store(value, memory, k * f.target.bytes)

        def row(r: Value, _: list[Value]) -> None:
            place = f.at(memory, f.multiply(r, width))
            own = [f.load(place, at, align=f.target.bytes) for at in range(0, width, f.target.bytes)]
            self._finish(f, [r], own)

        f.loop(0, self.rows, 1, row)

    def write_part(self, f: Function, part: Value, parts: int, sums: Callable[[list[Value]], list[Value]]) -> None:
        """Add one part of the sums to those before it, which lie where results will; make the results of the last."""
        zeros = [f.zero()] * (self.rows * len(self._lanes(f)))
        start = f.loop(0, f.minimum(part, 1), 1, lambda _, __: self._kept(f, range(self.rows)), zeros)
        found = sums(start)
        last = f.compare("eq", part, parts - 1)
        f.when(last, lambda: self.write(f, found), lambda: self.keep(f, found))

    def keep(self, f: Function, sums: Sequence[Value]) -> None:
        """Store sums where results will lie, in f32."""
        for k, value in enumerate(sums):
            self._store(f, value, *divmod(k, len(self._lanes(f))))

    def _kept(self, f: Function, rows: Sequence[Int]) -> list[Value]:
        """The sums of those rows that `keep` stored."""
        pointer, access = self.y
        return [
            read(f, pointer, _offset(f, access, r, v), access.channel, count)
            for r in rows
            for v, count in enumerate(self._lanes(f))
        ]

    def _lanes(self, f: Function) -> list[int]:
        """The channels of each vector of a row."""
        return [min(f.lanes, self.channels - first) for first in range(0, self.channels, f.lanes)]

    def _finish(self, f: Function, rows: Sequence[Int], sums: Sequence[Value]) -> None:
        left = iter(sums)
        same: dict[tuple[int, Int], Value] = {}
        for r in rows:
            for v, count in enumerate(self._lanes(f)):
                values = [next(left)]
                for k, (pointer, access) in enumerate(self.operands):
                    offset = _offset(f, access, r, v)
                    if (k, offset) not in same:
                        same[k, offset] = read(f, pointer, offset, access.channel, count, access.element)
                    values.append(same[k, offset])
                (result,) = evaluate(f, self.epilogue, values)
                self._store(f, result, r, v)

    def _store(self, f: Function, result: Value, r: Int, v: int) -> None:
        pointer, access = self.y
        write(f, result, pointer, _offset(f, access, r, v), access.channel, self._lanes(f)[v], access.element)


def _offset(f: Function, access: Access, r: Int, v: int) -> Int:
    """The bytes from a tile to vector `v` of its row `r`."""
    return f.add(f.multiply(r, access.column), v * f.lanes * access.channel)
