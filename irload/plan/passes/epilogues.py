"""Elementwise work on a result: Elementwise(f, Conv(x), y) → Conv(x, y; epilogue f). Likewise MatMul, Normalize."""

from __future__ import annotations

from copy import copy

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import Elementwise, WithEpilogue


def fuse_epilogues(program: Program) -> None:
    """Add each Elementwise step to the epilogue of the step whose result only it takes."""
    pending: list[Step] = list(program.steps)
    for step in pending:
        if not isinstance(step, WithEpilogue):
            continue
        consumer = program.sole_consumer(step.output)
        if not isinstance(consumer, Elementwise) or any(v.shape != step.output.shape for v in consumer.outputs):
            continue
        if len(consumer.outputs) == 1 and step.epilogue.may_grow(consumer.expression):
            fused = _fused(step, consumer)
            program.replace([step, consumer], [fused])
            pending.append(fused)  # more may follow


def _fused(step: WithEpilogue, consumer: Elementwise) -> WithEpilogue:
    """The step with the expression of its consumer behind its epilogue."""
    at = consumer.inputs.index(step.output)
    fused = copy(step)
    fused.inputs = [*step.inputs, *(v for k, v in enumerate(consumer.inputs) if k != at)]
    fused.outputs = consumer.outputs
    fused.epilogue = step.epilogue.then(consumer.expression, at)
    fused.origin = (*step.origin, *consumer.origin)
    return fused
