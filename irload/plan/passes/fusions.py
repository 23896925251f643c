"""Fuse Elementwise steps into the step that computes their operand, if no other step reads it.

Elementwise(f, Conv(x), y) → Conv(x, y; epilogue f), for steps with an epilogue. g(f(x), y) → (g∘f)(x, y), for
Elementwise steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ElementwiseStep, ExpressionStep, ProductStep, WithEpilogue
from irload.plan.passes.scalars import used_inputs


def fuse_epilogues(program: Program, supports: Callable[[Step], bool] = lambda step: True) -> None:
    """Append Elementwise steps to the epilogues of their producers. `supports`: True if a back end supports a step."""
    _fuse(program, WithEpilogue, supports)


def fuse_elementwise(program: Program, supports: Callable[[Step], bool] = lambda step: True) -> None:
    """Merge Elementwise steps into one. `supports`: True if a back end supports a step."""
    _fuse(program, ElementwiseStep, supports)


def _fuse(program: Program, kind: type[ExpressionStep], supports: Callable[[Step], bool]) -> None:
    pending: list[Step] = list(program.steps)
    gone: set[Step] = set()
    for step in pending:
        if not isinstance(step, kind) or step in gone or len(step.outputs) > 1:
            continue
        consumer = program.sole_consumer(step.output)
        if not isinstance(consumer, ElementwiseStep) or not _fits(step, consumer):
            continue
        at = consumer.inputs.index(step.output)
        inputs, expression = used_inputs(
            [*step.inputs, *(v for k, v in enumerate(consumer.inputs) if k != at)],
            step.elementwise_part.then(consumer.expression, at),
            step.MAIN_INPUTS,
        )
        origin = (*step.origin, *consumer.origin)
        fused = step.with_expression(inputs, expression, outputs=consumer.outputs, origin=origin)
        if supports(fused):
            program.replace([step, consumer], [fused])
            gone |= {step, consumer}
            pending.append(fused)  # the fused step may have another Elementwise consumer


def _fits(step: ExpressionStep, consumer: ElementwiseStep) -> bool:
    """True if the consumer has the shape of the step, the types that its kernels write, and a short expression."""
    if any(v.shape != step.output.shape for v in consumer.outputs):
        return False
    if isinstance(step, WithEpilogue):
        is_quantized = any(v.dtype == np.uint8 for v in (*consumer.inputs, *consumer.outputs))
        reads_bytes = isinstance(step, ProductStep) and step.multiplies_integers
        if len(consumer.outputs) > 1 or (is_quantized and not reads_bytes):
            return False  # only kernels that read quantized data can write it
    return step.elementwise_part.may_grow(consumer.expression)
