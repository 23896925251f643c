"""The products of attention for few queries, such as the next token of a decoder, which read keys and values in place.

Packing keys and values takes as long as multiplying them by a few queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from irload.plan.backends.llvm.arguments import WORD
from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernels.attention_sums import AttentionSums, Block, SumsOfRow
from irload.plan.backends.llvm.shuffles import folded
from irload.record import record

MOST_ROWS = 8
"""Maximum number of queries."""
_PANEL = 4
"""Vectors of keys whose scores are computed before their maximum."""
_SUMS = 8
"""Vectors of values in registers for all queries together: enough to hide the latency of FMAs."""


@record()
class RowSums(AttentionSums):
    """One strip of all queries. Elements of keys and values are contiguous, and fill whole vectors.

    `strides`: bytes between keys, and between values, which the code reads.
    """

    strides: tuple[int, int]

    nbytes: ClassVar[int] = 2 * WORD
    skips: ClassVar[bool] = False

    @staticmethod
    def of(lanes: int, rows: int, depth: int, strides: tuple[int, int]) -> RowSums:
        """The sums for this number of queries and elements of a value."""
        return RowSums(lanes, rows, _PANEL, max(1, min(_SUMS // rows, depth // lanes)), strides)

    @property
    def code(self) -> RowSums:
        return replace(self, strides=(0, 0))

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.strides

    def begin(self, f: Function, numbers: Pointer, memory: Pointer) -> None:
        for at in (0, WORD):
            f.store_scalar(f.load_int(numbers, at), memory, at)

    def scores(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int, target: Pointer) -> None:
        """Multiply all queries by the keys of a panel. Lanes after the last key repeat its scores."""
        f, stride, last = b.f, b.f.load_int(b.memory), b.rows.keys - 1
        for v in f.range(0, vectors):
            first = (panel * self.keys + v) * f.lanes
            keys = [b.keys + f.minimum(first + k, last) * stride for k in range(f.lanes)]
            for r in f.range(0, self.rows):
                query = b.q + r * b.row
                sums = [f.zero()] * f.lanes
                for at in range(0, b.width * 4, f.lanes * 4):
                    part = f.load(query, at)
                    sums = [f.fma(f.load(key, at), part, total) for key, total in zip(keys, sums, strict=True)]
                f.store(folded(f, sums, Vec.__add__), target, r * self._row + v * (f.lanes * 4))

    def results(self, b: Block, strip: AnyInt, panel: AnyInt, vectors: int) -> Iterator[SumsOfRow]:
        f, rows, stride = b.f, range(self.rows), b.f.load_int(b.memory, WORD)
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
