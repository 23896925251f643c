"""Fuse chains of elementwise steps: g(f(x), y) → (g∘f)(x, y), if the inner result has no other consumer."""

from __future__ import annotations

from collections.abc import Callable

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ElementwiseStep


def fuse_elementwise(program: Program, supports: Callable[[Step], bool] = lambda step: True) -> None:
    """Merge each Elementwise step into the Elementwise that is its only consumer.

    `supports`: returns True for steps that a back end supports.
    """
    pending = list(program.steps)
    gone: set[Step] = set()
    for step in pending:
        if not isinstance(step, ElementwiseStep) or step in gone or len(step.outputs) > 1:
            continue
        consumer = program.sole_consumer(step.output)
        if not isinstance(consumer, ElementwiseStep) or any(v.shape != step.output.shape for v in consumer.outputs):
            continue
        if not step.expression.may_grow(consumer.expression):
            continue
        at = consumer.inputs.index(step.output)
        rest = [v for k, v in enumerate(consumer.inputs) if k != at]
        joined = ElementwiseStep(
            [*step.inputs, *rest],
            consumer.outputs,
            expression=step.expression.then(consumer.expression, at),
            origin=(*step.origin, *consumer.origin),
        )
        if not supports(joined):
            continue
        program.replace([step, consumer], [joined])
        gone |= {step, consumer}
        pending.append(joined)
