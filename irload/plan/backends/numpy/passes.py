"""Rewrites that NumPy's kernels require, after the passes for all back ends."""

from __future__ import annotations

from dataclasses import replace

from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import IDENTITY, ElementwiseStep
from irload.plan.passes.scalars import used_inputs


def split_results(program: Program) -> None:
    """Split expressions with several results into one step per result, because a tile has one output."""
    for step in program.steps:
        if isinstance(step, ElementwiseStep) and len(step.outputs) > 1:
            registers = step.expression.result_registers
            parts = [_single(step, *result) for result in zip(step.outputs, registers, strict=True)]
            program.replace([step], parts)


def _single(step: ElementwiseStep, output: Value, register: int) -> ElementwiseStep:
    """Return the step for the result in a register, with only the instructions that compute it."""
    operands = step.expression.operands
    if register < operands:
        inputs, expression = [step.inputs[register]], IDENTITY
    else:
        needed = Expression(operands, step.expression.instructions[: register - operands + 1]).pruned()
        inputs, expression = used_inputs(step.inputs, needed)
    return replace(step, inputs=inputs, outputs=[output], expression=expression)
