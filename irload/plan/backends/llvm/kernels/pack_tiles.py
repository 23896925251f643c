"""Packing matrices that are not constant as weights of tile products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import ClassVar

from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.kernels.loops import indices
from irload.plan.backends.llvm.operands import read_rounded
from irload.plan.backends.llvm.shuffles import transposed
from irload.record import record


@record()
class PackTiles(Kernel):
    """Matrices of f32 [outer…, K, N] → [outer…, panel, chunk, tile, 16, 16, 2] in bf16. Pointers: from, to.

    A panel is `width` tiles of 16 columns, a chunk 32 rows, a row of a tile a pair of rows of each column. Rows beyond
    the matrix are 0, columns beyond it 0 or one of its own. `strides`: bytes between matrices along each outer axis;
    `steps`: between rows and between columns of one.
    """

    outer: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, int]
    steps: tuple[int, int]
    width: int

    prepares: ClassVar[bool] = True

    @property
    def code(self) -> PackTiles:
        return replace(self, outer=tuple(0 if k == 0 else size for k, size in enumerate(self.outer)))

    @property
    def _panels(self) -> int:
        return -(-self.shape[1] // (self.width * tiles.ROWS))

    @property
    def _chunks(self) -> int:
        return -(-self.shape[0] // tiles.DEPTH)

    @property
    def matrix(self) -> int:
        """The bytes of one packed matrix."""
        return self._panels * self._chunks * self.width * tiles.NBYTES

    @property
    def nbytes(self) -> int:
        """The bytes of all packed matrices."""
        return prod(self.outer) * self.matrix

    @property
    def count(self) -> int:
        """Chunks of panels."""
        return self.nbytes // (self.width * tiles.NBYTES)

    @property
    def cycles(self) -> float:
        each = 6 if self.steps[1] == 4 else 10 if self.steps[0] == 4 else 64
        return self.count * self.width * tiles.ROWS * each

    def write(self, function: Function) -> None:
        f = function
        source, target = (f.load_pointer(f["arguments"], 8 * k) for k in range(2))

        def unit(index: Value, _: list[Value]) -> None:
            place = f.at(target, f.multiply(index, self.width * tiles.NBYTES))
            rest, chunk = f.divmod(index, self._chunks)
            rest, panel = f.divmod(rest, self._panels)
            offset = f.add(
                f.multiply(chunk, tiles.DEPTH * self.steps[0]),
                f.multiply(panel, self.width * tiles.ROWS * self.steps[1]),
            )
            for at, stride in zip(indices(f, rest, self.outer), self.strides, strict=True):
                offset = f.add(offset, f.multiply(at, stride))
            self._dispatch(f, f.at(source, offset), place, chunk, panel)

        f.loop(f["begin"], f["end"], 1, unit)

    def _dispatch(self, f: Function, start: Value, place: Value, chunk: Int, panel: Int) -> None:
        """Whole chunks and panels, and the last ones."""
        width = self.width * tiles.ROWS
        rows = self.shape[0] - (self._chunks - 1) * tiles.DEPTH
        columns = self.shape[1] - (self._panels - 1) * width

        def by_panel(rows: int) -> Callable[[], None]:
            def part(columns: int) -> Callable[[], None]:
                return lambda: self._write_chunk(f, start, place, rows, columns)

            if columns == width or self._panels == 1:
                return part(columns)
            return lambda: f.when(f.compare("eq", panel, self._panels - 1), part(columns), part(width))

        if rows == tiles.DEPTH or self._chunks == 1:
            by_panel(rows)()
        else:
            f.when(f.compare("eq", chunk, self._chunks - 1), by_panel(rows), by_panel(tiles.DEPTH))

    def _write_chunk(self, f: Function, start: Value, place: Value, rows: int, columns: int) -> None:
        for tile in range(self.width):
            count = max(0, min(tiles.ROWS, columns - tile * tiles.ROWS))
            source = f.at(start, tile * tiles.ROWS * self.steps[1])
            target = f.at(place, tile * tiles.NBYTES)
            if count and self.steps[0] == 4 and self.steps[1] != 4:
                self._by_columns(f, source, target, rows, count)
            else:
                self._by_rows(f, source, target, rows, count)

    def _by_rows(self, f: Function, source: Value, target: Value, rows: int, columns: int) -> None:
        """Pairs of rows, read along columns."""

        def element(k: Int) -> Value:
            return read_rounded(f, source, f.multiply(k, self.steps[0]), self.steps[1], columns)

        def pair(k: Value, _: list[Value]) -> None:
            first = element(f.multiply(k, 2))
            second = element(f.add(f.multiply(k, 2), 1))
            bfloat16.store(f, bfloat16.paired(f, first, second), target, f.multiply(k, tiles.BYTES))

        def nothing(k: Value, _: list[Value]) -> None:
            empty = bfloat16.zeros(f)
            bfloat16.store(f, bfloat16.paired(f, empty, empty), target, f.multiply(k, tiles.BYTES))

        whole, odd = divmod(rows if columns else 0, 2)
        if whole:
            f.loop(0, whole, 1, pair)
        if odd:
            last = bfloat16.paired(f, element(2 * whole), bfloat16.zeros(f))
            bfloat16.store(f, last, target, whole * tiles.BYTES)
        if whole + odd < tiles.ROWS:
            f.loop(whole + odd, tiles.ROWS, 1, nothing)

    def _by_columns(self, f: Function, source: Value, target: Value, rows: int, columns: int) -> None:
        """Columns, along which rows lie beside each other, turned in registers."""
        name = f"turn{rows}"
        if not f.module.has(name):
            self._write_turn(f.module.function(name, ["ptr source", "ptr target", "i64 last"]), rows)
        f.call(name, [source, target, columns - 1])

    def _write_turn(self, f: Function, rows: int) -> None:
        """Turn one tile. Columns behind the `last` one are taken for that."""
        lines: list[Value] = []
        for c in range(tiles.ROWS):
            column = f.multiply(f.minimum(f["last"], c) if c else 0, self.steps[1])
            halves = [read_rounded(f, f["source"], f.add(column, first * 4), 4, rows - first) for first in (0, f.lanes)]
            joined = bfloat16.joined(f, *halves)
            lines.append(f.value(f.vector, f"bitcast {joined.type} {joined} to {f.vector}"))
        for k, line in enumerate(transposed(f, lines)):
            f.store(line, f["target"], k * tiles.BYTES)
