"""How much arithmetic a step does, by the formulas of irload.macs."""

from __future__ import annotations

from math import prod

from irload.macs import attention_macs, convolution_macs, matmul_macs
from irload.plan.ir.program import Step
from irload.plan.ir.steps import Attention, Conv, ConvTranspose, MatMul


def flops(step: Step) -> int:
    """Multiplications and additions of convolutions, matmuls and attention; 0 where memory is what counts."""
    if isinstance(step, Conv | ConvTranspose):
        of = step.output if isinstance(step, Conv) else step.inputs[0]
        return 2 * convolution_macs(step.inputs[1].size, prod((of.shape[0], *of.shape[2:])))
    if isinstance(step, MatMul):
        return 2 * matmul_macs(step.output.size, step.inputs[0].shape[-2 if step.transpose_a else -1])
    if isinstance(step, Attention):
        q, k, v, *_ = step.inputs
        queries = prod(step.output.shape[:-1])
        return 2 * attention_macs(queries, k.shape[-2], q.shape[-1], v.shape[-1])
    return 0
