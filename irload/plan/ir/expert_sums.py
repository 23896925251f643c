"""The steps that add up the results of the experts of each row."""

from __future__ import annotations

from irload.plan.ir.expression import MULTIPLY
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps import ElementwiseStep, GatherStep, ReduceStep, ReshapeStep


def sum_experts(results: Value, positions: Value, weights: Value, output: Value) -> list[Step]:
    """Return the steps that add up results [rows · k, columns], sorted by expert, times their weights.

    `positions` [rows, k]: the position of each pair of a row and an expert. `weights`: rows · k elements in any shape.
    """
    rows, k = positions.shape
    columns, dtype = results.shape[1], results.dtype
    gathered, weighted = (Value((rows, k, columns), dtype, name=output.name) for _ in range(2))
    factors, added = Value((rows, k, 1), dtype, name=weights.name), Value((rows, columns), dtype, name=output.name)
    return [
        GatherStep([results, positions], [gathered], axis=0),
        ReshapeStep([weights], [factors]),
        ElementwiseStep([gathered, factors], [weighted], expression=MULTIPLY),
        ReduceStep([weighted], [added], kind="sum", axes=(1,)),
        ReshapeStep([added], [output]),
    ]
