"""The softmax of attention: running maxima, exponentials and row sums of the scores of a block of queries.

The product with the keys writes scores panel by panel. After each panel, scale and mask are applied, and the running
maximum of each row is updated, lane by lane. After the last panel, the exponentials of the differences from the row
maximum replace the scores. The inverse of each row sum is stored, and multiplies the product with the values.
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
from irload.plan.backends.llvm.vector_math import LOG2_E, exp2_of_negative, exp_or_zero, larger
from irload.record import record

StoreTurn = Callable[[AnyInt, AnyInt, Pointer, list[Vec]], None]
"""Stores the exponentials of a turn: index of the row, index of the turn, address of its scores, vectors."""


@record()
class Scoring:
    """score = q·k · scale + mask, or `dropped` where a boolean mask is false (None without a boolean mask).

    `mask`: the column stride of the mask in bytes. `causal`: query i attends to the keys 0…i. `sink`: whether each row
    has a further score. `coarse`: exponentials are rounded to bf16, so a shorter polynomial suffices.
    """

    scale: float
    mask: int | None
    dropped: float | None
    causal: bool
    sink: bool
    coarse: bool

    @property
    def rewrites(self) -> bool:
        """True if scores replace products in memory before the row maximum is known.

        Scales from 0 to 1 are applied later, to differences of scores. A larger scale is applied to the scores, which
        may overflow to infinity and so result in NaN.
        """
        return self.mask is not None or self.causal or self.sink or not 0 < self.scale <= 1

    @property
    def factor(self) -> float:
        """The factor that converts differences of scores to exponents."""
        return (1.0 if self.rewrites else self.scale) * (LOG2_E if self.coarse else 1.0)


@record(eq=False)
class ScoreLayout:
    """The memory layout of scores: strides in bytes of strips of rows (`strip`), rows (`row`), panels of columns.

    Exponentials are computed in turns of `turn` vectors, `step` bytes apart. Fields are ints, or values of the code.
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
        """The bytes of the scores, and of a vector and two numbers per row (see `ScoreRows`)."""
        return self.nbytes + _whole(self.strips * self.rows, lanes) * ((lanes + 2) * 4)

    def of(self, f: Function, queries: AnyInt) -> ScoreLayout:
        """The layout of a block if `queries` queries, at least one, are left."""
        if self.strips == 1:
            return self
        return replace(self, strips=f.minimum(self.strips, (queries + self.rows - 1) // self.rows))


@record(eq=False)
class ScoreRows:
    """The rows of scores of a block, in the memory at `scores`.

    After the scores, the memory has a vector per row, with the running maximum (later the sum) of each lane; then the
    negated maximum of each row; then the inverse of each row sum.

    `least`: the exponent below which exponentials are 0. `start`: the index of the first query of the block. `last`:
    the index of the first query of the last strip of the matrix. `mask`, `sink`: the addresses of the mask and of the
    sink of query 0.
    """

    f: Function
    scoring: Scoring
    layout: ScoreLayout
    scores: Pointer
    keys: AnyInt
    least: Vec
    start: AnyInt
    last: AnyInt
    mask: Pointer | None
    mask_row: AnyInt
    sink: Pointer | None
    sink_row: AnyInt

    def first(self, strip: AnyInt) -> AnyInt:
        """The index of the first query of a strip."""
        return self.f.minimum(self.start + strip * self.layout.rows, self.last)

    def scores_of(self, strip: AnyInt) -> Pointer:
        """The address of the scores of a strip."""
        return self.scores + strip * self.layout.strip

    @property
    def vectors(self) -> AnyInt:
        """The number of vectors of a row that contain keys."""
        return (self.keys + self.f.lanes - 1) // self.f.lanes

    def begin(self) -> None:
        """Begin running maxima with the sinks, or −∞."""
        f = self.f
        for i in f.range(0, self.layout.strips * self.layout.rows):
            f.store(self._sink(i), self._lanes, i * (f.lanes * 4))

    def _sink(self, row: AnyInt) -> Vec:
        """The sink of a row of the block in the first lane, −∞ in the others."""
        f, none, rows = self.f, self.f.number(-np.inf), self.layout.rows
        if self.sink is None:
            return none
        query = self.first(row // rows) + row % rows
        return none.with_lane(0, f.load_scalar(self.sink, query * self.sink_row))

    def update(self, strip: AnyInt, vector: AnyInt, start: Pointer, vectors: AnyInt, tail: AnyInt | None) -> None:
        """Turn the products of some vectors of columns of a strip into scores, and update the running maxima.

        The products are stored at `start`; the first is vector number `vector` of the rows. `tail`: the keys of the
        last vector, if it may be partial. For `coarse`, the vectors after it are set to −∞ up to the end of its turn.
        """
        f, first, first_row = self.f, self.first(strip), strip * self.layout.rows
        turns = (vectors + self.layout.turn - 1) // self.layout.turn

        def row(r: AnyInt) -> None:
            running, scores = self._lanes + (first_row + r) * (f.lanes * 4), start + r * self.layout.row

            def maximum(v: AnyInt, top: Vec, count: AnyInt | None) -> Vec:
                score = self._score(f.load(scores, v * (f.lanes * 4)), first + r, (vector + v) * f.lanes, count)
                if self.scoring.rewrites or count is not None:
                    f.store(score, scores, v * (f.lanes * 4))
                return larger(score, top)

            top = [f.load(running)]
            if tail is None and isinstance(vectors, int):
                for v in range(vectors):
                    top[0] = maximum(v, top[0], None)
            else:
                for v in f.range(0, vectors - 1, 1, top):
                    top[0] = maximum(v, top[0], None)
                top[0] = maximum(vectors - 1, top[0], tail)
                for v in f.range(vectors, turns * self.layout.turn) if self.scoring.coarse else ():
                    f.store(f.number(-np.inf), scores, v * (f.lanes * 4))
            f.store(top[0], running)

        if tail is None:
            for r, _ in unrolled(f, 0, self.layout.rows, SCORE_ROWS):
                row(r)
        else:
            for r in f.range(0, self.layout.rows):
                row(r)

    def finish(self, store: StoreTurn | None = None) -> None:
        """Replace the scores by their exponentials, or pass these to `store`; then invert the row sums."""
        self._fold(0, larger, lambda maximum: maximum * -1.0)
        for s in repeat(self.f, 0, self.layout.strips):
            for r in self.f.range(0, self.layout.rows):
                self._exponentials(s, r, store)
        self._fold(1, Vec.__add__, lambda total: 1.0 / total)

    def inverse(self, row: AnyInt) -> Vec:
        """The inverse of a row sum in all lanes."""
        return self.f.broadcast(self._numbers(1), row * 4)

    @property
    def _lanes(self) -> Pointer:
        return self.scores + self.layout.nbytes

    def _numbers(self, k: int) -> Pointer:
        """The address of the negated maxima of all rows (k = 0), or of the inverse row sums (k = 1)."""
        return self._lanes + _whole(self.layout.strips * self.layout.rows, self.f.lanes) * ((self.f.lanes + k) * 4)

    def _fold(self, k: int, combine: Callable[[Vec, Vec], Vec], finish: Callable[[Vec], Vec]) -> None:
        """Reduce the vector of each row to a number, and store it as number `k` of the row."""
        f = self.f
        for first in f.range(0, self.layout.strips * self.layout.rows, f.lanes):
            lanes = self._lanes + first * (f.lanes * 4)
            result = folded(f, [f.load(lanes, lane * f.lanes * 4) for lane in range(f.lanes)], combine)
            f.store(finish(result), self._numbers(k), first * 4)

    def _score(self, total: Vec, query: AnyInt, column: AnyInt, count: AnyInt | None) -> Vec:
        """A vector of products with scale and mask applied; −∞ for keys that the query does not attend to."""
        f, scoring, mask, score = self.f, self.scoring, self.mask, total
        if mask is not None and scoring.mask is not None:
            at = query * self.mask_row + column * scoring.mask
            if scoring.dropped is not None:
                kept = read_booleans(f, mask, at, scoring.mask, count)
                score = (score * scoring.scale).where(kept, scoring.dropped)
            else:
                score = score.times_plus(scoring.scale, read(f, mask, at, scoring.mask, count))
        elif scoring.rewrites and scoring.scale != 1:
            score = score * scoring.scale
        if scoring.causal:
            score = score.where(f.mask(query + 1 - column), -np.inf)
        return score if count is None else score.where(f.mask(count), -np.inf)

    def _exponentials(self, strip: AnyInt, r: AnyInt, store: StoreTurn | None) -> None:
        """Compute the exponentials of a row, and their sum in each lane."""
        f, row, nbytes = self.f, strip * self.layout.rows + r, self.f.lanes * 4
        scores = self.scores_of(strip) + r * self.layout.row
        lowered = f.broadcast(self._numbers(0), row * 4)

        def part(turn_start: Pointer, turn: AnyInt, vectors: int, total: Vec) -> Vec:
            powers = [self._exponential(f.load(turn_start, k * nbytes) + lowered) for k in range(vectors)]
            for k, power in enumerate(powers):
                total = total + power
                if store is None:
                    f.store(power, turn_start, k * nbytes)
            if store is not None:
                store(row, turn, turn_start, powers)
            return total

        padded = self.vectors + (self.layout.turn - 1 if self.scoring.coarse else 0)
        whole = padded // self.layout.turn
        total = [f.zero() if self.sink is None else self._exponential(self._sink(row) + lowered)]
        for k in f.range(0, whole, 1, total):
            total[0] = part(scores + k * self.layout.step, k, self.layout.turn, total[0])
        for k in f.range(0, padded - whole * self.layout.turn, 1, total) if not self.scoring.coarse else ():
            total[0] = part(scores + whole * self.layout.step + k * nbytes, whole, 1, total[0])
        f.store(total[0], self._lanes, row * nbytes)

    def _exponential(self, difference: Vec) -> Vec:
        """Scale after the subtraction: if large scores were scaled before, rounding might hide their difference."""
        factor = self.scoring.factor
        exponent = difference * factor if factor != 1 else difference
        return exp2_of_negative(exponent) if self.scoring.coarse else exp_or_zero(exponent, self.least)


def _whole(rows: Any, lanes: int) -> Any:
    """The number of rows, rounded up to a multiple of the lanes."""
    return (rows + lanes - 1) // lanes * lanes
