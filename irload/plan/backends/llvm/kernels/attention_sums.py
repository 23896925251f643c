"""The products of attention: a block of queries by packed keys, and the exponentials of the scores by packed values.

The micro-kernel is a field of the kernel: `AttentionSums` uses f32 in vector registers, `PairSums` bf16 in vector
registers, `TileSums` bf16 in AMX tiles. `RowSums` is for few queries, such as the next token of a decoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.axes import ANY
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.dot import FMA, PAIRS, Dot
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernels.loops import each_vector
from irload.plan.backends.llvm.kernels.score_rows import ScoreLayout, ScoreRows
from irload.plan.backends.llvm.operands import read_rounded
from irload.plan.backends.llvm.shuffles import folded
from irload.plan.backends.llvm.tile import RegisterTile, SumLevel, write_sums
from irload.record import record

MOST_ROWS = 8
"""Maximum number of queries of `RowSums`."""
_PANEL = 4
"""Vectors of keys whose scores `RowSums` computes before their maximum."""
_SUMS = 8
"""Vectors of values that `RowSums` has in registers for all queries: enough to hide the latency of FMAs."""

SumsOfRow = tuple[AnyInt, list[Vec]]
"""The index of a row in its strip, and its sums."""


@record(eq=False)
class Block:
    """A block of queries in a function. `q`: the address of query 0; `row`, `column`: strides of queries and elements.

    `width`: the elements of a query. `memory`: `AttentionSums.nbytes` of scratch memory; `copies`: memory of
    `AttentionSums.copies`. `packed_keys`: the number of packed keys and values, of which the block may multiply only
    the first `rows.keys`.
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
    """The products in vector registers. A strip has `rows` queries; its tile of `keys` vectors of scores stays in them.

    `keys`, `values`: vectors per panel. Scores are stored panel by panel, so that all offsets in a tile are constants.
    Exponentials replace them in place.
    """

    lanes: int
    rows: int
    keys: int
    values: int

    dot: ClassVar[Dot] = FMA
    nbytes: ClassVar[int] = 0
    """Scratch memory per thread of a constant size."""
    skips: ClassVar[bool] = True
    """True if a block may multiply only the first keys, to which its queries attend."""

    @property
    def code(self) -> Self:
        """The sums in the key of code, which reads integers that are ANY, and `numbers`."""
        return self

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that `begin` reads."""
        return ()

    @property
    def rate(self) -> float:
        """Products per cycle and lane, for cost models."""
        return self.dot.rate * self.dot.k

    @property
    def counts(self) -> Sequence[int]:
        """The numbers of vectors for which code multiplies the last panel of keys: powers of 2, or a whole panel.

        The smallest sufficient number is used. Memory has whole panels.
        """
        return sorted({min(1 << k, self.keys) for k in range(self.keys.bit_length() + 1)})

    @property
    def _row(self) -> int:
        """Bytes of a row of words of a panel of keys, and of a row of its scores."""
        return self.keys * self.lanes * WORD

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

    def queries(self, b: Block, strip: AnyInt) -> tuple[Pointer, AnyInt, int]:
        """The address of the first query of a strip; the strides of queries, and of the words of a query."""
        return b.q + b.rows.first(strip) * b.row, b.row, b.column

    def scores(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int, target: Pointer) -> None:
        """Multiply a strip by the first vectors of a panel of keys, and store the scores at `target`."""
        (x, row, column), words = self.queries(b, strip), self.dot.words(b.width)
        tile = RegisterTile(self.rows, row, vectors, self.keys, (SumLevel(words, column),), dot=self.dot)
        w = b.keys + panel * (words * self._row)
        for k, value in enumerate(write_sums(b.f, tile, [x], w, {})):
            b.f.store(value, target, k // vectors * self._row + k % vectors * self.lanes * 4)

    def results(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int) -> Iterator[SumsOfRow]:
        """The products of a strip by the first vectors of a panel of values: for each row, its index and its sums."""
        row, wide, step = self.values * self.lanes * WORD, self.keys * self.lanes, b.rows.layout.step
        whole, words = b.rows.keys // wide, wide // self.dot.k
        x, w = b.rows.scores_of(strip), b.values + panel * (self.dot.words(b.packed_keys) * row)
        levels = SumLevel(1, step), SumLevel(words, WORD)
        panels = RegisterTile(self.rows, self._row, vectors, self.values, levels, dot=self.dot)
        sums = write_sums(b.f, panels, [x], w, {0: (0, whole)})
        single = RegisterTile(self.rows, self._row, vectors, self.values, (SumLevel(1, WORD),), dot=self.dot)
        x, w, rest = x + whole * step, w + whole * (words * row), self.dot.words(b.rows.keys - whole * wide)
        sums = write_sums(b.f, single, [x], w, {0: (0, rest)}, start=sums)
        for r in range(self.rows):
            yield r, sums[r * vectors : (r + 1) * vectors]


@record()
class RoundedSums(AttentionSums):
    """Base: products in bf16. Queries are rounded once per block; exponentials are rounded as they are computed."""

    def pitch(self, count: Any) -> Any:
        """Bytes between rows of `count` rounded elements."""
        raise NotImplementedError

    def prepare(self, b: Block) -> None:
        """Round the queries to bf16, padded with zeros to whole words."""
        f, first, pitch = b.f, b.rows.first(0), self.pitch(b.width)
        end = b.rows.first(b.rows.layout.strips - 1) + b.rows.layout.rows
        for i in f.range(first, end):
            source, target = b.q + i * b.row, b.copies + (i - first) * pitch
            for column, count in each_vector(f, b.width, b.width):
                value = read_rounded(f, source, column * b.column, b.column, count or f.lanes)
                f.store(value, target, column * bfloat16.BYTES)
            for column in range(-(-b.width // f.lanes) * f.lanes, pitch // bfloat16.BYTES, f.lanes):
                f.store(f.zero("i16"), target, column * bfloat16.BYTES)


def store_rounded(f: Function, powers: Sequence[Vec], target: Pointer) -> None:
    """Store vectors of exponentials one after another, rounded to bf16."""
    for k, power in enumerate(powers):
        f.store(bfloat16.rounded(f, power), target, k * f.lanes * bfloat16.BYTES)


@record()
class PairSums(RoundedSums):
    """The products in bf16 by AVX512_BF16, in vector registers; scores and sums of exponentials are f32.

    Exponentials replace the scores of their panel in place: each row takes the first half of its memory.
    """

    dot: ClassVar[Dot] = PAIRS

    def pitch(self, count: Any) -> Any:
        return (count + self.lanes - 1) // self.lanes * (self.lanes * bfloat16.BYTES)

    def copies(self, block: int, keys: int, width: int) -> int:
        return block * self.pitch(width)

    def queries(self, b: Block, strip: AnyInt) -> tuple[Pointer, AnyInt, int]:
        pitch = self.pitch(b.width)
        return b.copies + (b.rows.first(strip) - b.rows.first(0)) * pitch, pitch, WORD

    def finish(self, b: Block) -> None:
        def store(row: AnyInt, turn: AnyInt, scores: Pointer, powers: list[Vec]) -> None:
            store_rounded(b.f, powers, scores)

        b.rows.finish(store)


@record()
class RowSums(AttentionSums):
    """Keys and values are read in place, since packing them takes as long as multiplying them by a few queries.

    Elements of keys and values are contiguous, and fill whole vectors.

    `strides`: bytes between keys, and between values, which the code reads.
    """

    strides: tuple[int, int]

    skips: ClassVar[bool] = False

    @staticmethod
    def of(lanes: int, rows: int, depth: int, strides: tuple[int, int]) -> RowSums:
        """The sums for this number of queries and elements of a value."""
        return RowSums(lanes, rows, _PANEL, max(1, min(_SUMS // rows, depth // lanes)), strides)

    @property
    def code(self) -> RowSums:
        return replace(self, strides=(ANY, ANY))

    def scores(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int, target: Pointer) -> None:
        """Multiply a strip by the keys of a panel. Lanes after the last key repeat its scores."""
        f, stride, last = b.f, self.strides[0], b.rows.keys - 1
        first_query, row, _ = self.queries(b, strip)
        for v in f.range(0, vectors):
            first = (panel * self.keys + v) * f.lanes
            keys = [b.keys + f.minimum(first + k, last) * stride for k in range(f.lanes)]
            for r in f.range(0, self.rows):
                query = first_query + r * row
                sums = [f.zero()] * f.lanes
                for at in range(0, b.width * 4, f.lanes * 4):
                    part = f.load(query, at)
                    sums = [f.fma(f.load(key, at), part, total) for key, total in zip(keys, sums, strict=True)]
                f.store(folded(f, sums, Vec.__add__), target, r * self._row + v * (f.lanes * 4))

    def results(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int) -> Iterator[SumsOfRow]:
        f, rows, stride = b.f, range(self.rows), self.strides[1]
        wide, powers = self.keys * f.lanes, b.rows.scores_of(strip)
        values = b.values + panel * (self.values * f.lanes * 4)
        sums = [f.zero()] * (self.rows * vectors)

        def add(powers: Pointer, value: Pointer) -> None:
            parts = [f.load(value, v * (f.lanes * 4)) for v in range(vectors)]
            for r in rows:
                power = f.broadcast(powers, r * self._row)
                for v, part in enumerate(parts):
                    sums[r * vectors + v] = f.fma(power, part, sums[r * vectors + v])

        whole = b.rows.keys // wide
        for k in f.range(0, whole, 1, sums):
            for j in f.range(0, wide, 1, sums):
                add(powers + k * b.rows.layout.step + j * 4, values + (k * wide + j) * stride)
        for j in f.range(0, b.rows.keys - whole * wide, 1, sums):
            add(powers + whole * b.rows.layout.step + j * 4, values + (whole * wide + j) * stride)
        for r in rows:
            yield r, sums[r * vectors : (r + 1) * vectors]
