"""Attention in bf16 by the tiles of AMX; scores, powers and their sums are f32."""

from __future__ import annotations

from irload.plan.backends.llvm import bfloat16, tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernels.attention_blocks import AttentionBlocks, row_pitch
from irload.plan.backends.llvm.kernels.loops import each_vector
from irload.plan.backends.llvm.kernels.score_rows import ScoreRows
from irload.plan.backends.llvm.operands import read_rounded, write
from irload.plan.backends.llvm.tiles import Tiles
from irload.record import record

_SUMS, _DATA, _WEIGHTS = 4, 4, 6
"""Tiles that hold sums, then the first ones that hold data, and weights."""

CACHED = 1024 * 1024
"""Bytes of scores that a thread works at."""


@record()
class AttendTiles(AttentionBlocks):
    """Attention of blocks of one strip of `rows` queries or of two; k and v are packed as tiles.

    The memory of a thread has scores, their powers in bf16, q in bf16, and tiles of results.
    """

    @property
    def why(self) -> str:
        return "compiled, bf16 by AMX"

    @property
    def cycles(self) -> float:
        _, keys, width, depth = self.shape
        dots = -(-keys // tiles.ROWS) * _chunks(width) + _chunks(keys) * -(-depth // tiles.ROWS)
        vectors = 9 * self._rows.padded / self.lanes + (width + depth) / 4
        return self.count * self.block * (2 * dots + vectors)

    @property
    def _height(self) -> int:
        """Strips of a block."""
        return self.block // self.rows

    @property
    def _width(self) -> int:
        """Tiles of columns that are summed at the same time."""
        return _SUMS // self._height

    @property
    def _rows(self) -> ScoreRows:
        return self._score_rows(row_pitch(2 * _chunks(self.shape[1])), coarse=True)

    @property
    def _parts(self) -> tuple[int, ...]:
        """The bytes of each part of the memory of a thread; the last one is of tiles that are emulated."""
        _, keys, width, _ = self.shape
        powers, queries = (self.block * row_pitch(_chunks(length)) for length in (keys, width))
        return self._rows.nbytes, powers, queries, _SUMS * tiles.NBYTES, tiles.STATE

    def _part(self, f: Function, k: int) -> Value:
        return f.at(f["scratch"], sum(self._parts[:k]))

    @property
    def scratch(self) -> int:
        return sum(self._parts)

    def _registers(self, f: Function) -> Tiles:
        return Tiles(f, self._part(f, 4))

    def _prepare(self, f: Function) -> None:
        data, weights = (self.rows, tiles.BYTES), (tiles.ROWS, tiles.BYTES)
        self._registers(f).configure([data] * _WEIGHTS + [weights] * 2)

    def _complete(self, f: Function) -> None:
        self._registers(f).release()

    def _write_block(self, f: Function) -> None:
        scores, powers, queries, results = (self._part(f, k) for k in range(4))
        self._round_queries(f, queries)
        self._rows.begin(f, scores)
        self._write_scores(f, queries, scores)

        def keep(row: Value, column: Value, found: list[Value]) -> None:
            place = f.at(powers, f.multiply(row, row_pitch(_chunks(self.shape[1]))))
            for k, power in enumerate(found):
                at = f.add(f.multiply(column, bfloat16.BYTES), k * f.lanes * bfloat16.BYTES)
                bfloat16.store(f, bfloat16.rounded(f, power), place, at)

        self._rows.finish(f, scores, keep)
        self._write_results(f, scores, powers, results)

    def _round_queries(self, f: Function, queries: Value) -> None:
        """The rows of q in bf16, filled up with zeros to whole chunks."""
        width = self.shape[2]

        def row(i: Value, _: list[Value]) -> None:
            source, place = f.at(f["q"], f.multiply(i, self.q.row)), f.multiply(i, row_pitch(_chunks(width)))

            def vector(column: Int, count: int | None) -> None:
                value = read_rounded(f, source, f.multiply(column, self.q.column), self.q.column, count or f.lanes)
                bfloat16.store(f, value, queries, f.add(place, f.multiply(column, bfloat16.BYTES)))

            each_vector(f, width, vector)
            for column in range(-(-width // f.lanes) * f.lanes, _chunks(width) * tiles.DEPTH, f.lanes):
                bfloat16.store(f, bfloat16.zeros(f), queries, f.add(place, column * bfloat16.BYTES))

        f.loop(0, self.block, 1, row)

    def _write_scores(self, f: Function, queries: Value, scores: Value) -> None:
        """The scores of all rows."""
        _, keys, width, _ = self.shape

        def group(g: Int, columns: int) -> None:
            t = f.multiply(g, self._width)
            weights = f.at(f["k"], f.multiply(t, _chunks(width) * tiles.NBYTES))
            self._sum(f, queries, _chunks(width), weights, columns)
            self._store(f, f.at(scores, f.multiply(t, tiles.BYTES)), self._rows.pitch, columns)
            taken = (0, self.block), (f.multiply(t, tiles.ROWS), columns)
            self._rows.take(f, scores, *taken, f["start"], self._mask(f))

        self._each_group(f, keys, self._width * tiles.ROWS, group)

    def _write_results(self, f: Function, scores: Value, powers: Value, results: Value) -> None:
        """Powers times v, over the sums of powers."""
        _, keys, _, depth = self.shape
        pitch = self._width * tiles.BYTES

        def group(g: Int, columns: int) -> None:
            t = f.multiply(g, self._width)
            weights = f.at(f["v"], f.multiply(t, _chunks(keys) * tiles.NBYTES))
            self._sum(f, powers, _chunks(keys), weights, columns)
            self._store(f, results, pitch, columns)

            def row(i: Value, _: list[Value]) -> None:
                inverse = self._rows.inverse(f, scores, i)
                out = f.add(f.multiply(i, self.out.row), f.multiply(t, tiles.ROWS * self.out.column))
                for lane in range(0, columns, f.lanes):
                    total = f.load(results, f.add(f.multiply(i, pitch), lane * 4))
                    size = min(f.lanes, columns - lane)
                    at = f.add(out, lane * self.out.column)
                    write(f, f.arithmetic("fmul", total, inverse), f["out"], at, self.out.column, size)

            f.loop(0, self.block, 1, row)

        self._each_group(f, depth, self._width * tiles.ROWS, group)

    def _sum(self, f: Function, data: Value, chunks: int, weights: Value, columns: int) -> None:
        """The sums of all rows of data by some columns of packed weights."""
        registers, pitch, count = self._registers(f), row_pitch(chunks), -(-columns // tiles.ROWS)
        for tile in range(self._height * count):
            registers.zero(tile)

        def step(chunk: Value, _: list[Value]) -> None:
            for a in range(self._height):
                place = f.at(data, f.add(f.multiply(chunk, tiles.BYTES), a * self.rows * pitch))
                registers.load(_DATA + a, place, pitch)
            for b in range(count):
                place = f.at(weights, f.add(f.multiply(chunk, tiles.NBYTES), b * chunks * tiles.NBYTES))
                registers.load(_WEIGHTS + b % 2, place, tiles.BYTES)
                for a in range(self._height):
                    registers.dot(a * count + b, _DATA + a, _WEIGHTS + b % 2)

        f.loop(0, chunks, 1, step)

    def _store(self, f: Function, place: Value, pitch: int, columns: int) -> None:
        """The sums of so many columns, to rows `pitch` bytes apart."""
        count = -(-columns // tiles.ROWS)
        for a in range(self._height):
            for b in range(count):
                self._registers(f).store(a * count + b, f.at(place, a * self.rows * pitch + b * tiles.BYTES), pitch)


def _chunks(length: int) -> int:
    """The rows of tiles that hold so many bf16."""
    return -(-length // tiles.DEPTH)


def strips(queries: int, keys: int, matrices: int, threads: int) -> tuple[int, int]:
    """The rows of a strip and of a block, such that threads take the fewest cycles.

    Strips by twos load keys and values half as often, as long as their scores fit the second level of the cache.
    """

    def cost(shape: tuple[int, int]) -> float:
        rows, height = shape
        turns = -(-matrices * -(-queries // (rows * height)) // threads)
        return turns * height * (max(rows + 1, 9) * (4.4 if height == 1 else 4) + rows * 8)

    shapes = [
        (rows, height)
        for height in (2, 1)
        for rows in range(tiles.ROWS, 0, -1)
        if rows * height <= queries and (height == 1 or rows * height * keys * 4 <= CACHED)
    ]
    rows, height = min(shapes, key=cost)
    return rows, rows * height
