"""Fuse Elementwise steps into Conv, MatMul and Normalize: Elementwise(f, Conv(x), y) → Conv(x, y; epilogue f)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ElementwiseStep, ProductStep, WithEpilogue


def fuse_epilogues(program: Program, supports: Callable[[Step], bool] = lambda step: True) -> None:
    """Append each Elementwise step to the epilogue of its producer if no other step reads the producer's result.

    `supports`: returns True for steps that a back end supports.
    """
    pending: list[Step] = list(program.steps)
    for step in pending:
        if not isinstance(step, WithEpilogue):
            continue
        consumer = program.sole_consumer(step.output)
        if not isinstance(consumer, ElementwiseStep) or any(v.shape != step.output.shape for v in consumer.outputs):
            continue
        is_quantized = any(v.dtype == np.uint8 for v in (*consumer.inputs, *consumer.outputs))
        if is_quantized and not (isinstance(step, ProductStep) and step.multiplies_integers):
            continue  # only kernels that read quantized data can write it
        if len(consumer.outputs) == 1 and step.epilogue.may_grow(consumer.expression):
            fused = _fused(step, consumer)
            if supports(fused):
                program.replace([step, consumer], [fused])
                pending.append(fused)  # the fused step may have another Elementwise consumer


def _fused(step: WithEpilogue, consumer: ElementwiseStep) -> WithEpilogue:
    """Return the step with the consumer's expression appended to its epilogue."""
    at = consumer.inputs.index(step.output)
    return replace(
        step,
        inputs=[*step.inputs, *(v for k, v in enumerate(consumer.inputs) if k != at)],
        outputs=consumer.outputs,
        epilogue=step.epilogue.then(consumer.expression, at),
        origin=(*step.origin, *consumer.origin),
    )
