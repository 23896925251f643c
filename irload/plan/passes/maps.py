"""Chains of elementwise steps: Map(g, Map(f, x), y) → Map(g∘f, x, y), where the inner one has no other taker."""

from __future__ import annotations

from irload.plan.program import Program, Step
from irload.plan.steps import Map


def fuse_maps(program: Program) -> None:
    """Join each Map into the one Map that takes its result."""
    pending = list(program.steps)
    gone: set[Step] = set()
    for step in pending:
        if not isinstance(step, Map) or step in gone:
            continue
        taker = program.sole_consumer(step.output)
        if not isinstance(taker, Map) or taker is step or taker.output.shape != step.output.shape:
            continue
        if not step.expression.may_grow(taker.expression):
            continue
        at = taker.inputs.index(step.output)
        rest = [v for k, v in enumerate(taker.inputs) if k != at]
        joined = Map(
            [*step.inputs, *rest],
            taker.outputs,
            expression=step.expression.then(taker.expression, at),
            origin=(*step.origin, *taker.origin),
        )
        program.replace([step, taker], [joined])
        gone |= {step, taker}
        pending.append(joined)
