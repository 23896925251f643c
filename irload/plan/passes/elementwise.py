"""Chains of elementwise steps: g(f(x), y) → (g∘f)(x, y), where the inner result has no other taker."""

from __future__ import annotations

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import Elementwise


def fuse_elementwise(program: Program) -> None:
    """Concat each Elementwise into the one Elementwise that takes its result."""
    pending = list(program.steps)
    gone: set[Step] = set()
    for step in pending:
        if not isinstance(step, Elementwise) or step in gone:
            continue
        taker = program.sole_consumer(step.output)
        if not isinstance(taker, Elementwise) or taker is step or taker.output.shape != step.output.shape:
            continue
        if not step.expression.may_grow(taker.expression):
            continue
        at = taker.inputs.index(step.output)
        rest = [v for k, v in enumerate(taker.inputs) if k != at]
        joined = Elementwise(
            [*step.inputs, *rest],
            taker.outputs,
            expression=step.expression.then(taker.expression, at),
            origin=(*step.origin, *taker.origin),
        )
        program.replace([step, taker], [joined])
        gone |= {step, taker}
        pending.append(joined)
