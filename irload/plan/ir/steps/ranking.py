"""Steps on positions of elements along an axis: TopK, updates at positions, and the order of rows by expert."""

from __future__ import annotations

from irload.plan.ir.program import PlanInvalid, Step
from irload.plan.ir.steps import rules
from irload.plan.ir.steps.movement import INDICES
from irload.record import record


@record(frozen=False, eq=False, kw_only=True)
class TopKStep(Step):
    """The greatest (or, without `largest`, the least) elements along an axis, and their positions.

    The length of the outputs along the axis is k. The best element is first; with `by_position`, the elements have the
    same order as in x. Of equal elements, the first is better; NaN is greater than all numbers.
    """

    axis: int
    largest: bool
    by_position: bool

    def check(self) -> None:
        rules.counts(self, 1, 2)
        (x,), (best, positions) = self.inputs, self.outputs
        rules.f32(x, best)
        rules.equal("the shape of the positions", positions.shape, best.shape)
        others = [tuple(n for k, n in enumerate(v.shape) if k != self.axis) for v in (x, best)]
        rules.equal("the shape without the axis", others[1], others[0])
        if positions.dtype.name not in INDICES or not 0 <= self.axis < len(x.shape):
            raise PlanInvalid(f"positions are {positions.dtype}, the axis is {self.axis}")


@record(frozen=False, eq=False, kw_only=True)
class ScatterStep(Step):
    """The data with the elements at positions along an axis replaced by updates. Inputs: data, positions, updates.

    All positions are in range, because another step has computed them.
    """

    axis: int

    def check(self) -> None:
        rules.counts(self, 3)
        data, positions, updates = self.inputs
        rules.f32(data, updates)
        rules.like(self.output, data)
        rules.equal("the shape of the updates", updates.shape, positions.shape)
        others = [tuple(n for k, n in enumerate(v.shape) if k != self.axis) for v in (data, updates)]
        rules.equal("the shape without the axis", others[1], others[0])


@record(frozen=False, eq=False)
class ExpertOrderStep(Step):
    """Pairs of a row and an expert, sorted by expert. Input: the experts [rows, k] of each row, all in range.

    Outputs, in i32: the row and the expert of each pair in this order [rows · k], the number of pairs of each expert
    [experts], and the position of each pair in this order [rows, k].
    """

    def check(self) -> None:
        rules.counts(self, 1, 4)
        (chosen,), (row, expert, counts, positions) = self.inputs, self.outputs
        rules.equal("whether experts are i32 or i64", chosen.dtype.name in INDICES, True)
        rules.equal("the dtype of the outputs", {v.dtype.name for v in self.outputs}, {"int32"})
        rules.equal("the shapes of rows and experts", (row.shape, expert.shape), ((chosen.size,), (chosen.size,)))
        rules.equal("the shape of the positions", positions.shape, chosen.shape)
        rules.equal("the rank of the counts", len(counts.shape), 1)
