"""The products of attention: sums of a block of queries by packed keys, and of their exponentials by packed values.

How a kernel multiplies is data: `Sums` computes tiles of f32 in vector registers, `TileSums` bf16 in tiles of AMX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.score_rows import Layout, ScoreRows
from irload.plan.backends.llvm.tile import Level, RegisterTile, write_sums
from irload.record import record

SumsOfRow = tuple[AnyInt, list[Vec]]
"""The number of a row in its strip, and its sums."""


@record(eq=False)
class Block:
    """A block of queries in a function. `q` is query 0, `row` and `column` the bytes between queries and elements.

    `memory` has `nbytes` of a way to multiply, and `copies` its copies.
    """

    f: Function
    rows: ScoreRows
    q: Pointer
    row: int
    column: int
    width: int
    keys: Pointer
    values: Pointer
    memory: Pointer
    copies: Pointer


@record()
class Sums:
    """A strip is a tile of `rows` queries × `keys` vectors in registers. Exponentials replace scores, in f32.

    `keys` and `values` are the vectors of panels. Scores lie panel by panel, so that all distances in a tile are known.
    """

    lanes: int
    rows: int
    keys: int
    values: int

    element: ClassVar[str] = F32
    """The type that products read."""
    nbytes: ClassVar[int] = 0
    """Memory of a thread whose size depends on no number."""

    @property
    def code(self) -> Self:
        """Without what `numbers` give."""
        return self

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that `begin` reads."""
        return ()

    @property
    def counts(self) -> Sequence[int]:
        """Vectors of the last panel of keys for which there is code: powers of 2, as scores of whole panels fit."""
        return sorted({min(1 << k, self.keys) for k in range(self.keys.bit_length() + 1)})

    @property
    def _row(self) -> int:
        """Bytes of a row of a panel of keys, and of its scores."""
        return self.keys * self.lanes * 4

    def layout(self, block: Any, keys: Any) -> Layout:
        """The layout of the scores of a block. `block` and `keys` are known, or registers."""
        wide, step = self.keys * self.lanes, self.rows * self._row
        return Layout(block // self.rows, self.rows, (keys + wide - 1) // wide * step, self._row, step, self.keys, step)

    def copies(self, block: int, keys: int, width: int) -> int:
        """The bytes of copies of queries and exponentials."""
        return 0

    def begin(self, f: Function, numbers: Pointer, memory: Pointer) -> None:
        """Configure the registers of a thread."""

    def end(self, f: Function, memory: Pointer) -> None:
        """Release them."""

    def prepare(self, b: Block) -> None:
        """Copy the queries of a block."""

    def finish(self, b: Block) -> None:
        """Compute exponentials and row sums."""
        b.rows.finish()

    def scores(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int, place: Pointer) -> None:
        """Store the sums of a strip by the first vectors of a panel of keys, as the layout says."""
        tile = RegisterTile(self.rows, b.row, vectors, self.keys, (Level(b.width, b.column),))
        x, w = b.q + b.rows.first(strip) * b.row, b.keys + panel * (b.width * self._row)
        for k, value in enumerate(write_sums(b.f, tile, x, w, {})):
            b.f.store(value, place, k // vectors * self._row + k % vectors * self.lanes * 4)

    def results(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int) -> Iterator[SumsOfRow]:
        """`for row, totals in sums.results(…)`: the rows of a strip by the first vectors of a panel of values."""
        row, wide, step = self.values * self.lanes * 4, self.keys * self.lanes, b.rows.layout.step
        whole = b.rows.keys // wide
        x, w = b.rows.place(strip), b.values + panel * (b.rows.keys * row)
        panels = RegisterTile(self.rows, self._row, vectors, self.values, (Level(1, step), Level(wide, 4)))
        sums = write_sums(b.f, panels, x, w, {0: (0, whole)})
        single = RegisterTile(self.rows, self._row, vectors, self.values, (Level(1, 4),))
        x, w, rest = x + whole * step, w + whole * (wide * row), b.rows.keys - whole * wide
        sums = write_sums(b.f, single, x, w, {0: (0, rest)}, start=sums)
        for r in range(self.rows):
            yield r, sums[r * vectors : (r + 1) * vectors]
