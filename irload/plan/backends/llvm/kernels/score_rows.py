"""Rows of scores in the cache: maxima, exponentials and row sums of a block of queries.

Products with the keys write sums, group of columns by group. After each group, scale and mask are applied and the
running maximum of each row is updated, lane by lane. Once all scores are known, exponentials of the differences from
the row maximum replace them, and the inverse of each row sum is kept for the products with the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from irload.plan.backends.llvm.builder import AnyInt, Function, Pointer, Vec
from irload.plan.backends.llvm.kernels.loops import repeat, unrolled
from irload.plan.backends.llvm.operands import read, read_booleans
from irload.plan.backends.llvm.shuffles import folded
from irload.plan.backends.llvm.tuning import SCORE_ROWS
from irload.plan.backends.llvm.vector_math import LOG2_E, exp2_of_negative, exp_or_nothing, larger
from irload.plan.ir.steps.products import MASKED
from irload.record import record

Keep = Callable[[AnyInt, AnyInt, list[Vec]], None]
"""Stores the exponentials of a turn: row, number of the turn, vectors."""


@record()
class Scoring:
    """How sums become scores: sum · scale + mask, or `MASKED` where a boolean mask (`keeps`) is false.

    `mask`: bytes between columns of the mask. `causal`: query i has the keys 0…i. `coarse`: exponentials are rounded to
    bf16, so a shorter polynomial suffices.
    """

    scale: float
    mask: int | None
    keeps: bool
    causal: bool
    coarse: bool

    @property
    def rewrites(self) -> bool:
        """True if scores replace sums in memory before the maximum is known.

        A scale above 1 may overflow to infinity, and so give NaN; smaller scales apply to differences of scores.
        """
        return self.mask is not None or self.causal or not 0 < self.scale <= 1

    @property
    def factor(self) -> float:
        """The factor from differences of scores to exponents."""
        return (1.0 if self.rewrites else self.scale) * (LOG2_E if self.coarse else 1.0)


@record(eq=False)
class Layout:
    """Where scores lie: strips of rows, of each row panels of columns. Distances count bytes.

    Exponentials are computed in turns of `turn` vectors, `step` bytes apart.

    Numbers are known, or registers of a function.
    """

    strips: Any
    rows: Any
    strip: Any
    row: Any
    panel: int
    turn: int
    step: int

    @property
    def nbytes(self) -> Any:
        """The bytes of the scores."""
        return self.strips * self.strip

    def all_bytes(self, lanes: int) -> Any:
        """The bytes of the scores, and of a vector and two numbers for each row."""
        return self.nbytes + _whole(self.strips * self.rows, lanes) * ((lanes + 2) * 4)

    def of(self, f: Function, queries: AnyInt) -> Layout:
        """The layout of a block that has `queries` left, at least one."""
        if self.strips == 1:
            return self
        return replace(self, strips=f.minimum(self.strips, (queries + self.rows - 1) // self.rows))


@record(eq=False)
class ScoreRows:
    """The rows of a block, at `scores` as the layout says.

    Behind them lies a vector for each row, with the running maximum of each lane and later the sum of each lane; then
    the negated maximum of each row, and the inverse of its sum.

    `least`: the exponent below which exponentials are 0; `start`: the number of the first query, and `last` that of the
    first query of the last strip of all; `mask`: that of query 0.
    """

    f: Function
    scoring: Scoring
    layout: Layout
    scores: Pointer
    keys: AnyInt
    least: Vec
    start: AnyInt
    last: AnyInt
    mask: Pointer | None
    mask_row: AnyInt

    def first(self, strip: AnyInt) -> AnyInt:
        """The number of the first query of a strip."""
        return self.f.minimum(self.start + strip * self.layout.rows, self.last)

    def place(self, strip: AnyInt) -> Pointer:
        """The scores of a strip."""
        return self.scores + strip * self.layout.strip

    @property
    def vectors(self) -> AnyInt:
        """Vectors of a row that have keys."""
        return (self.keys + self.f.lanes - 1) // self.f.lanes

    def begin(self) -> None:
        """Set running maxima to −∞, and scores of the last vector that is rounded with another one."""
        f, least = self.f, self.f.number(-np.inf)
        for i in f.range(0, self.layout.strips * self.layout.rows):
            f.store(least, self._lanes, i * (f.lanes * 4))
        if self.scoring.coarse:
            last = (self.vectors - 1) // self.layout.turn * self.layout.step + (self.layout.turn - 1) * f.lanes * 4
            for i in f.range(0, self.layout.rows):
                f.store(least, self.scores, i * self.layout.row + last)

    def update(self, strip: AnyInt, vector: AnyInt, place: Pointer, vectors: AnyInt, tail: AnyInt | None) -> None:
        """Sums of some vectors of columns of a strip were stored at `place`, from `vector` on: update its rows.

        `tail`: keys of the last vector, if it may be partial.
        """
        f, first, before = self.f, self.first(strip), strip * self.layout.rows

        def row(r: AnyInt) -> None:
            kept, own = self._lanes + (before + r) * (f.lanes * 4), place + r * self.layout.row

            def maximum(v: AnyInt, top: Vec, count: AnyInt | None) -> Vec:
                score = self._score(f.load(own, v * (f.lanes * 4)), first + r, (vector + v) * f.lanes, count)
                if self.scoring.rewrites or count is not None:
                    f.store(score, own, v * (f.lanes * 4))
                return larger(score, top)

            top = [f.load(kept)]
            if tail is None and isinstance(vectors, int):
                for v in range(vectors):
                    top[0] = maximum(v, top[0], None)
            else:
                for v in f.range(0, vectors - 1, 1, top):
                    top[0] = maximum(v, top[0], None)
                top[0] = maximum(vectors - 1, top[0], tail)
            f.store(top[0], kept)

        if tail is None:
            for r, _ in unrolled(f, 0, self.layout.rows, SCORE_ROWS):
                row(r)
        else:
            for r in f.range(0, self.layout.rows):
                row(r)

    def finish(self, keep: Keep | None = None) -> None:
        """All scores are known: exponentials replace them, or go to `keep`; then the sums are inverted."""
        self._fold(0, larger, lambda maximum: maximum * -1.0)
        for s in repeat(self.f, 0, self.layout.strips):
            for r in self.f.range(0, self.layout.rows):
                self._exponentials(s, r, keep)
        self._fold(1, Vec.__add__, lambda total: 1.0 / total)

    def inverse(self, row: AnyInt) -> Vec:
        """The inverse of a row sum in all lanes."""
        return self.f.broadcast(self._numbers(1), row * 4)

    @property
    def _lanes(self) -> Pointer:
        return self.scores + self.layout.nbytes

    def _numbers(self, k: int) -> Pointer:
        """Negated maxima of all rows (0), or inverse sums (1)."""
        return self._lanes + _whole(self.layout.strips * self.layout.rows, self.f.lanes) * ((self.f.lanes + k) * 4)

    def _fold(self, k: int, combine: Callable[[Vec, Vec], Vec], finish: Callable[[Vec], Vec]) -> None:
        """The vector of each row → its number `k`."""
        f = self.f
        for first in f.range(0, self.layout.strips * self.layout.rows, f.lanes):
            own = self._lanes + first * (f.lanes * 4)
            result = folded(f, [f.load(own, lane * f.lanes * 4) for lane in range(f.lanes)], combine)
            f.store(finish(result), self._numbers(k), first * 4)

    def _score(self, total: Vec, query: AnyInt, column: AnyInt, count: AnyInt | None) -> Vec:
        """A vector of sums with scale and mask, −∞ beyond the keys that the query has."""
        f, scoring, mask, score = self.f, self.scoring, self.mask, total
        if mask is not None and scoring.mask is not None:
            at = query * self.mask_row + column * scoring.mask
            if scoring.keeps:
                score = (score * scoring.scale).where(read_booleans(f, mask, at, scoring.mask, count), MASKED)
            else:
                score = score.times_plus(scoring.scale, read(f, mask, at, scoring.mask, count))
        elif scoring.rewrites and scoring.scale != 1:
            score = score * scoring.scale
        if scoring.causal:
            score = score.where(f.mask(query + 1 - column), -np.inf)
        return score if count is None else score.where(f.mask(count), -np.inf)

    def _exponentials(self, strip: AnyInt, r: AnyInt, keep: Keep | None) -> None:
        """The exponentials of a row, and their sum in each lane."""
        f, row, nbytes = self.f, strip * self.layout.rows + r, self.f.lanes * 4
        own = self.place(strip) + r * self.layout.row
        lowered = f.broadcast(self._numbers(0), row * 4)

        def part(place: Pointer, turn: AnyInt, vectors: int, total: Vec) -> Vec:
            powers = [self._exponential(f.load(place, k * nbytes) + lowered) for k in range(vectors)]
            for k, power in enumerate(powers):
                total = total + power
                if keep is None:
                    f.store(power, place, k * nbytes)
            if keep is not None:
                keep(row, turn, powers)
            return total

        padded = self.vectors + (self.layout.turn - 1 if self.scoring.coarse else 0)
        whole = padded // self.layout.turn
        total = [f.zero()]
        for k in f.range(0, whole, 1, total):
            total[0] = part(own + k * self.layout.step, k, self.layout.turn, total[0])
        for k in f.range(0, padded - whole * self.layout.turn, 1, total) if not self.scoring.coarse else ():
            total[0] = part(own + whole * self.layout.step + k * nbytes, whole, 1, total[0])
        f.store(total[0], self._lanes, row * nbytes)

    def _exponential(self, difference: Vec) -> Vec:
        """The factor follows the subtraction, since large scores differ by less than a rounding of their products."""
        factor = self.scoring.factor
        exponent = difference * factor if factor != 1 else difference
        return exp2_of_negative(exponent) if self.scoring.coarse else exp_or_nothing(exponent, self.least)


def _whole(rows: Any, lanes: int) -> Any:
    """Rows in whole vectors of numbers."""
    return (rows + lanes - 1) // lanes * lanes
