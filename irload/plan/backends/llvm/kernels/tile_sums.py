"""The products of attention in bf16 by the tiles of AMX; scores, exponentials and their sums are f32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.dot import TILES, Dot
from irload.plan.backends.llvm.kernels.attention_sums import Block, RoundedSums, SumsOfRow, store_rounded
from irload.plan.backends.llvm.kernels.score_rows import ScoreLayout
from irload.plan.backends.llvm.target import odd_pitch
from irload.plan.backends.llvm.tiles import Tiles
from irload.record import record

SUMS, _DATA, _WEIGHTS = 4, 4, 6
"""The number of tiles of sums; the indices of the first tile of data, and of the first tile of weights."""


@record()
class TileSums(RoundedSums):
    """A block is one strip: `height` tiles of `rows` queries. Its products with a panel are in SUMS tiles.

    The code reads `rows`, as part of the configuration of the tiles.
    """

    height: int

    dot: ClassVar[Dot] = TILES
    nbytes: ClassVar[int] = SUMS * tiles.NBYTES + tiles.STATE
    skips: ClassVar[bool] = False

    @staticmethod
    def of(rows: int, height: int) -> TileSums:
        """The sums of `height` tiles of `rows` queries."""
        return TileSums(tiles.ROWS, rows, SUMS // height, SUMS // height, height)

    @property
    def code(self) -> TileSums:
        return replace(self, rows=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        data, weights = (self.rows, tiles.BYTES), (tiles.ROWS, tiles.BYTES)
        return tuple(tiles.configuration([data] * _WEIGHTS + [weights] * 2))

    @property
    def rate(self) -> float:
        return self.dot.rate * self.dot.k * tiles.ROWS**2

    @property
    def counts(self) -> Sequence[int]:
        return range(1, self.keys + 1)

    def pitch(self, count: Any) -> Any:
        return odd_pitch(_chunks(count))

    def layout(self, block: Any, keys: Any) -> ScoreLayout:
        row = odd_pitch(2 * _chunks(keys))
        return ScoreLayout(
            1, block, block * row, row, self.keys * tiles.BYTES, tiles.DEPTH // self.lanes, 2 * tiles.BYTES
        )

    def copies(self, block: int, keys: int, width: int) -> int:
        return block * (self.pitch(width) + self.pitch(keys))

    def begin(self, f: Function, numbers: Pointer, state: Pointer) -> None:
        self._registers(f, state).configure_from(numbers)

    def end(self, f: Function, state: Pointer) -> None:
        self._registers(f, state).release()

    def _registers(self, f: Function, sums: Pointer) -> Tiles:
        return Tiles(f, sums + SUMS * tiles.NBYTES)

    def finish(self, b: Block) -> None:
        f, target, pitch = b.f, self._exponentials(b), self.pitch(b.rows.keys)

        def store(row: AnyInt, chunk: AnyInt, scores: Pointer, powers: list[Vec]) -> None:
            store_rounded(f, powers, target + row * pitch + chunk * tiles.BYTES)

        b.rows.finish(store)

    def _exponentials(self, b: Block) -> Pointer:
        return b.copies + b.rows.layout.rows * self.pitch(b.width)

    def scores(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int, target: Pointer) -> None:
        self._sum(b, b.copies, _chunks(b.width), b.keys, panel, vectors)
        self._store(b, target, b.rows.layout.row, vectors)

    def results(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int) -> Iterator[SumsOfRow]:
        self._sum(b, self._exponentials(b), _chunks(b.rows.keys), b.values, panel, vectors)
        f, row = b.f, self.values * tiles.BYTES
        self._store(b, b.memory, row, vectors)
        for i in f.range(0, b.rows.layout.rows):
            yield i, [f.load(b.memory, i * row + v * tiles.BYTES) for v in range(vectors)]

    def _sum(self, b: Block, data: Pointer, chunks: AnyInt, panels: Pointer, panel: AnyInt, count: int) -> None:
        """Multiply all rows of data by the first `count` tiles of a panel; the sums are in tiles."""
        f, registers, pitch, nbytes = b.f, self._registers(b.f, b.memory), odd_pitch(chunks), self.keys * tiles.NBYTES
        weights, rows = panels + panel * chunks * nbytes, b.rows.layout.rows // self.height
        registers.zero(self.height * count)
        for chunk in f.range(0, chunks):
            for a in range(self.height):
                registers.load(_DATA + a, data + chunk * tiles.BYTES + rows * pitch * a, pitch)
            for k in range(count):
                registers.load(_WEIGHTS + k % 2, weights + chunk * nbytes + k * tiles.NBYTES, tiles.BYTES)
                for a in range(self.height):
                    registers.dot(a * count + k, _DATA + a, _WEIGHTS + k % 2)

    def _store(self, b: Block, target: Pointer, pitch: AnyInt, count: int) -> None:
        strip = b.rows.layout.rows // self.height * pitch
        self._registers(b.f, b.memory).store_block(self.height, count, target, strip, pitch)


def _chunks(length: Any) -> Any:
    """The number of chunks (rows of a tile, of 32 elements) for `length` elements of bf16."""
    return (length + tiles.DEPTH - 1) // tiles.DEPTH
