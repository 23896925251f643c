"""How much arithmetic a step does."""

from __future__ import annotations

from math import prod

from irload.plan.ir.program import Step
from irload.plan.ir.steps import Attention, Conv, MatMul


def flops(step: Step) -> int:
    """Multiplications and additions of convolutions, matmuls and attention; 0 where memory is what counts."""
    if isinstance(step, Conv):
        _, _, depth, *kernel = step.inputs[1].shape
        return 2 * step.output.size * depth * prod(kernel)
    if isinstance(step, MatMul):
        return 2 * step.output.size * step.inputs[0].shape[-2 if step.transpose_a else -1]
    if isinstance(step, Attention):
        q, k, *_ = step.inputs
        return 2 * k.shape[-2] * (q.size + step.output.size)
    return 0
