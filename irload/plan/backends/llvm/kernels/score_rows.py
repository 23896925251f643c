"""Rows of scores, which the cache holds, become powers; what divides them is kept for whoever multiplies them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.builder import Function, Int, Value
from irload.plan.backends.llvm.kernels.loops import repeat
from irload.plan.backends.llvm.operands import read, read_booleans
from irload.plan.backends.llvm.shuffles import folded
from irload.plan.backends.llvm.vector_math import LOG2_E, exp2_of_negative, exp_or_nothing
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.powers import least_exponent
from irload.record import record

TOGETHER = 4
"""Rows whose largest scores are found at the same time: as many as one comparison takes cycles."""

Keep = Callable[[Value, Value, list[Value]], None]
"""Stores vectors of powers that lie beside each other: takes the row, the first column, and them."""


@record()
class ScoreRows:
    """`rows` rows of `keys` sums, `pitch` bytes apart → e^(sum · scale + mask − largest) and 1 / Σ of each row.

    `mask`: the bytes between its rows and between its columns. With `keeps` it is boolean, and −∞ stands where it is
    false. With `causal` row i has the keys 0…start + i. `coarse`: powers are to be rounded to bf16. The `padded`
    columns that are no keys get powers of 0, or NaN where all the row is.

    `scores` of the methods are `nbytes`: the rows, then a vector and two numbers of each. `begin` comes first, then
    `take` for all sums, and `finish`.
    """

    lanes: int
    rows: int
    keys: int
    pitch: int
    scale: float
    mask: tuple[int, int] | None
    keeps: bool
    causal: bool
    coarse: bool = False

    @property
    def _vectors(self) -> int:
        """Vectors of powers that are made in one turn."""
        return tiles.DEPTH // self.lanes if self.coarse else 1

    @property
    def padded(self) -> int:
        """The columns with powers."""
        wide = self._vectors * self.lanes
        return -(-self.keys // wide) * wide

    @property
    def nbytes(self) -> int:
        """The bytes of the rows, and of what belongs to them."""
        return self.rows * self.pitch + self._whole * (self.lanes + 2) * 4

    @property
    def _whole(self) -> int:
        """Rows in whole vectors of numbers."""
        return -(-self.rows // self.lanes) * self.lanes

    @property
    def _rewrites(self) -> bool:
        """True where scale and mask are applied to sums in memory, else as powers are made of them."""
        return self.mask is not None or self.causal or self.scale <= 0

    @property
    def _factor(self) -> float:
        """What scores are multiplied with to be exponents."""
        return (1.0 if self._rewrites else self.scale) * (LOG2_E if self.coarse else 1.0)

    def begin(self, f: Function, scores: Value) -> None:
        """No row has a score yet, and those beyond all keys are −∞."""
        columns = range(-(-self.keys // self.lanes) * self.lanes, self.padded, self.lanes)

        def row(i: Value, _: list[Value]) -> None:
            f.store(f.number(-np.inf), self._vectors_of(f, scores), f.multiply(i, self.lanes * 4))
            for column in columns:
                f.store(f.number(-np.inf), scores, f.add(f.multiply(i, self.pitch), column * 4))

        f.loop(0, self.rows, 1, row)

    def take(
        self,
        f: Function,
        scores: Value,
        rows: tuple[Int, int],
        columns: tuple[Int, int],
        start: Value,
        mask: Value | None,
    ) -> None:
        """Sums have been stored: of so many rows and columns from the first ones on. `mask`: that of the first row."""
        first, count = rows
        whole = count // TOGETHER * TOGETHER
        for begin, end, together in ((0, whole, TOGETHER), (whole, count, count - whole)):

            def some(i: Int, together: int = together) -> None:
                for k in range(together):
                    self._largest(f, scores, f.add(f.add(first, i), k), columns, start, mask)

            repeat(f, begin, end, max(together, 1), some)

    def finish(self, f: Function, scores: Value, keep: Keep | None = None) -> None:
        """All sums have been taken: powers replace scores, or go where `keep` stores."""
        self._fold(f, scores, 0, lambda a, b: _larger(f, a, b), lambda top: top * -self._factor)
        f.loop(0, self.rows, 1, lambda i, _: self._powers(f, scores, i, keep))
        self._fold(f, scores, 1, lambda a, b: f.arithmetic("fadd", a, b), lambda total: 1.0 / total)

    def inverse(self, f: Function, scores: Value, row: Int) -> Value:
        """1 / Σ of a row, in all lanes."""
        return f.broadcast(self._numbers(f, scores, 1), f.multiply(row, 4))

    def _vectors_of(self, f: Function, scores: Value) -> Value:
        """Where the vector of each row lies: the largest of its scores in each lane, then the sum of its powers."""
        return f.at(scores, self.rows * self.pitch)

    def _numbers(self, f: Function, scores: Value, k: int) -> Value:
        """Where the largest scores of all rows lie as exponents, negated (0), and the inverse sums (1)."""
        return f.at(scores, self.rows * self.pitch + self._whole * (self.lanes + k) * 4)

    def _fold(
        self,
        f: Function,
        scores: Value,
        k: int,
        combine: Callable[[Value, Value], Value],
        finish: Callable[[Vector], Vector],
    ) -> None:
        """The vector of each row → its `k`-th number."""

        def group(first: Int) -> None:
            own = f.at(self._vectors_of(f, scores), f.multiply(first, self.lanes * 4))
            found = folded(f, [f.load(own, lane * self.lanes * 4) for lane in range(self.lanes)], combine)
            f.store(finish(Vector(f, found)).value, self._numbers(f, scores, k), f.multiply(first, 4))

        repeat(f, 0, self.rows, self.lanes, group)

    def _largest(
        self, f: Function, scores: Value, row: Int, columns: tuple[Int, int], start: Value, mask: Value | None
    ) -> None:
        """The largest scores of a row in each lane so far, and scores that are ready for powers."""
        column, size = columns
        own = f.at(scores, f.add(f.multiply(row, self.pitch), f.multiply(column, 4)))
        kept = f.at(self._vectors_of(f, scores), f.multiply(row, self.lanes * 4))
        top = f.load(kept)
        for lane in range(0, size, self.lanes):
            rest = min(self.lanes, size - lane)
            score = self._score(f, f.load(own, lane * 4), row, f.add(column, lane), rest, start, mask)
            if self._rewrites or rest < self.lanes:
                f.store(score, own, lane * 4)
            top = _larger(f, score, top)
        f.store(top, kept)

    def _score(
        self, f: Function, total: Value, row: Int, column: Int, size: int, start: Value, mask: Value | None
    ) -> Value:
        """A vector of sums with scale and mask, −∞ beyond the keys that a row has."""
        score = Vector(f, total)
        if self.mask is not None and mask is not None:
            at = f.add(f.multiply(row, self.mask[0]), f.multiply(column, self.mask[1]))
            if self.keeps:
                score = (score * self.scale).where(read_booleans(f, mask, at, self.mask[1], size), -np.inf)
            else:
                score = score.times_plus(self.scale, Vector(f, read(f, mask, at, self.mask[1], size)))
        elif self._rewrites and self.scale != 1:
            score = score * self.scale
        if self.causal:
            score = score.where(self._seen(f, column, f.add(f.add(start, row), 1)), -np.inf)
        return score.where(f.mask(size), -np.inf).value if size < self.lanes else score.value

    def _seen(self, f: Function, column: Int, limit: Int) -> Value:
        """The lanes whose column lies below the limit."""
        count = f.value("i32", f"trunc i64 {f.subtract(limit, column)} to i32")
        lanes = ", ".join(f"i32 {k}" for k in range(self.lanes))
        first = f.value(f.integers, f"insertelement {f.integers} poison, i32 {count}, i64 0")
        text = f"shufflevector {f.integers} {first}, {f.integers} poison, {f.integers} zeroinitializer"
        return f.value(f.booleans, f"icmp slt {f.integers} <{lanes}>, {f.value(f.integers, text)}")

    def _powers(self, f: Function, scores: Value, row: Value, keep: Keep | None) -> None:
        """The powers of a row, and their sum in each lane."""
        factor, least = self._factor, least_exponent(self.keys)
        own = f.at(scores, f.multiply(row, self.pitch))
        lowered = Vector(f, f.broadcast(self._numbers(f, scores, 0), f.multiply(row, 4)))

        def turn(column: Value, carried: list[Value]) -> list[Value]:
            found: list[Value] = []
            for k in range(self._vectors):
                score = Vector(f, f.load(own, f.add(f.multiply(column, 4), k * self.lanes * 4)))
                score = score.times_plus(factor, lowered) if factor != 1 else score + lowered
                power = exp2_of_negative(score) if self.coarse else exp_or_nothing(score, least)
                found.append(power.value)
            if keep is not None:
                keep(row, column, found)
            else:
                for k, power in enumerate(found):
                    f.store(power, own, f.add(f.multiply(column, 4), k * self.lanes * 4))
            (total,) = carried
            for power in found:
                total = f.arithmetic("fadd", total, power)
            return [total]

        (total,) = f.loop(0, self.padded, self._vectors * self.lanes, turn, [f.zero()])
        f.store(total, self._vectors_of(f, scores), f.multiply(row, self.lanes * 4))


def _larger(f: Function, a: Value, b: Value) -> Value:
    """The larger one; `b` where `a` is NaN: a row with NaN comes out as NaN through its sum."""
    return f.select(f.compare_floats("ogt", a, b), a, b)
