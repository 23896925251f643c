"""The products of attention: a block of queries by packed keys, and the exponentials of the scores by packed values.

The micro-kernel is a field of the kernel: `AttentionSums` uses f32 in vector registers, `TileSums` bf16 in AMX tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.score_rows import ScoreLayout, ScoreRows
from irload.plan.backends.llvm.tile import RegisterTile, SumLevel, write_sums
from irload.record import record

SumsOfRow = tuple[AnyInt, list[Vec]]
"""The index of a row in its strip, and its sums."""


@record(eq=False)
class Block:
    """A block of queries in a function. `q`: the address of query 0; `row`, `column`: strides of queries and elements.

    `width`: the elements of a query. `memory`: `AttentionSums.nbytes` of scratch memory; `copies`: memory of
    `AttentionSums.copies`.
    `packed_keys`: the number of packed keys and values, of which the block may multiply only the first `rows.keys`.
    """

    f: Function
    rows: ScoreRows
    q: Pointer
    row: AnyInt
    column: int
    width: int
    keys: Pointer
    values: Pointer
    memory: Pointer
    copies: Pointer
    packed_keys: AnyInt


@record()
class AttentionSums:
    """The products in f32. A strip has `rows` queries; its tile of `keys` vectors of scores is in registers.

    `keys`, `values`: vectors per panel. Scores are stored panel by panel, so that all offsets in a tile are constants.
    Exponentials replace them in place.
    """

    lanes: int
    rows: int
    keys: int
    values: int

    element: ClassVar[str] = F32
    """The type of the multiplied elements."""
    nbytes: ClassVar[int] = 0
    """Scratch memory per thread of a constant size."""
    skips: ClassVar[bool] = True
    """True if a block may multiply only the first keys, to which its queries attend."""

    @property
    def code(self) -> Self:
        """The fields that determine the code, without values that `numbers` lists."""
        return self

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that `begin` reads."""
        return ()

    @property
    def counts(self) -> Sequence[int]:
        """The numbers of vectors for which code multiplies the last panel of keys: powers of 2, or a whole panel.

        The smallest sufficient number is used. Memory has whole panels.
        """
        return sorted({min(1 << k, self.keys) for k in range(self.keys.bit_length() + 1)})

    @property
    def _row(self) -> int:
        """Bytes of a row of a panel of keys, and of a row of its scores."""
        return self.keys * self.lanes * 4

    def layout(self, block: Any, keys: Any) -> ScoreLayout:
        """The layout of the scores of a block. `block` and `keys` are ints, or values of the code."""
        wide, step = self.keys * self.lanes, self.rows * self._row
        return ScoreLayout(
            block // self.rows, self.rows, (keys + wide - 1) // wide * step, self._row, step, self.keys, step
        )

    def copies(self, block: int, keys: int, width: int) -> int:
        """The bytes of the copies of queries and exponentials in another type."""
        return 0

    def begin(self, f: Function, numbers: Pointer, memory: Pointer) -> None:
        """Configure the registers of a thread."""

    def end(self, f: Function, memory: Pointer) -> None:
        """Release the registers of a thread."""

    def prepare(self, b: Block) -> None:
        """Convert the queries of a block, if needed."""

    def finish(self, b: Block) -> None:
        """Compute exponentials and row sums."""
        b.rows.finish()

    def scores(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int, target: Pointer) -> None:
        """Multiply a strip by the first vectors of a panel of keys, and store the scores at `target`."""
        tile = RegisterTile(self.rows, b.row, vectors, self.keys, (SumLevel(b.width, b.column),))
        x, w = b.q + b.rows.first(strip) * b.row, b.keys + panel * (b.width * self._row)
        for k, value in enumerate(write_sums(b.f, tile, x, w, {})):
            b.f.store(value, target, k // vectors * self._row + k % vectors * self.lanes * 4)

    def results(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int) -> Iterator[SumsOfRow]:
        """The products of a strip by the first vectors of a panel of values: for each row, its index and its sums."""
        row, wide, step = self.values * self.lanes * 4, self.keys * self.lanes, b.rows.layout.step
        whole = b.rows.keys // wide
        x, w = b.rows.scores_of(strip), b.values + panel * (b.packed_keys * row)
        panels = RegisterTile(self.rows, self._row, vectors, self.values, (SumLevel(1, step), SumLevel(wide, 4)))
        sums = write_sums(b.f, panels, x, w, {0: (0, whole)})
        single = RegisterTile(self.rows, self._row, vectors, self.values, (SumLevel(1, 4),))
        x, w, rest = x + whole * step, w + whole * (wide * row), b.rows.keys - whole * wide
        sums = write_sums(b.f, single, x, w, {0: (0, rest)}, start=sums)
        for r in range(self.rows):
            yield r, sums[r * vectors : (r + 1) * vectors]
