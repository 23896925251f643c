"""Attention in f32: rows of scores stay in the cache from the product with keys to that with values."""

from __future__ import annotations

from math import prod

from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernels.attention_blocks import AttentionBlocks, row_pitch
from irload.plan.backends.llvm.kernels.score_rows import ScoreRows
from irload.plan.backends.llvm.operands import write
from irload.plan.backends.llvm.tile import LINE, Level, Row, Tile, write_sums
from irload.record import record


@record()
class Attend(AttentionBlocks):
    """Attention by tiles of vectors; k and v are in panels of them."""

    panels: tuple[int, int]
    """Vectors of a panel of keys, and of values."""
    vectors: tuple[int, int]
    """Vectors of a tile of scores, and of results."""

    @property
    def _pitch(self) -> int:
        """Bytes between rows of scores."""
        return pitch(self.lanes, self.shape[1])

    @property
    def _rows(self) -> ScoreRows:
        return self._score_rows(self._pitch)

    @property
    def cycles(self) -> float:
        queries, keys, width, depth = self.shape
        return prod(self.outer) * queries * keys * ((width + depth) / 2 + 10) / self.lanes

    @property
    def scratch(self) -> int:
        return self._rows.nbytes

    def _write_block(self, f: Function) -> None:
        self._rows.begin(f, f["scratch"])
        self._write_scores(f)
        self._rows.finish(f, f["scratch"])
        self._write_results(f)

    def _write_scores(self, f: Function) -> None:
        """The scores of all rows of the block."""
        _, keys, width, _ = self.shape
        wide = self.vectors[0] * self.lanes

        def group(g: Int, columns: int) -> None:
            panels = f.at(f["k"], f.multiply(g, wide * width * 4))
            vectors = -(-columns // self.lanes)
            tile = Tile(self._tile_rows(self.q.row), vectors, self.panels[0], (Level(width, self.q.column),))

            def rows(t: Value, _: list[Value]) -> None:
                found = write_sums(f, tile, f.at(f["q"], f.multiply(t, self.rows * self.q.row)), panels, {})
                place = f.at(f["scratch"], f.add(f.multiply(t, self.rows * self._pitch), f.multiply(g, wide * 4)))
                for k, value in enumerate(found):
                    r, v = divmod(k, vectors)
                    f.store(value, place, r * self._pitch + v * self.lanes * 4)
                taken = (f.multiply(t, self.rows), self.rows), (f.multiply(g, wide), columns)
                self._rows.take(f, f["scratch"], *taken, f["start"], self._mask(f))

            f.loop(0, self.block // self.rows, 1, rows)

        self._each_group(f, keys, wide, group)

    def _write_results(self, f: Function) -> None:
        """Rows of powers times v, over the sums of the rows."""
        _, keys, _, depth = self.shape
        wide = self.vectors[1] * self.lanes

        def group(g: Int, columns: int) -> None:
            panels = f.at(f["v"], f.multiply(g, wide * keys * 4))
            vectors = -(-columns // self.lanes)
            tile = Tile(self._tile_rows(self._pitch), vectors, self.panels[1], (Level(keys, 4),))

            def rows(t: Value, _: list[Value]) -> None:
                first = f.multiply(t, self.rows)
                found = write_sums(f, tile, f.at(f["scratch"], f.multiply(first, self._pitch)), panels, {})
                columns_at = f.multiply(g, wide * self.out.column)
                place = f.at(f["out"], f.add(f.multiply(first, self.out.row), columns_at))
                for k, value in enumerate(found):
                    r, v = divmod(k, vectors)
                    inverse = self._rows.inverse(f, f["scratch"], f.add(first, r))
                    count = min(self.lanes, columns - v * self.lanes)
                    at = r * self.out.row + v * self.lanes * self.out.column
                    write(f, f.arithmetic("fmul", value, inverse), place, at, self.out.column, count)

            f.loop(0, self.block // self.rows, 1, rows)

        self._each_group(f, depth, wide, group)

    def _tile_rows(self, pitch: int) -> tuple[Row, ...]:
        return tuple(Row(r * pitch) for r in range(self.rows))


def pitch(lanes: int, keys: int) -> int:
    """Bytes between rows of scores, in whole vectors."""
    return row_pitch(-(-max(keys, lanes) * 4 // LINE))
