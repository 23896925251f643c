"""What NumPy's kernels need rewritten, after the passes that hold for all back ends."""

from __future__ import annotations

from dataclasses import replace

from irload.plan.ir.expression import Expression
from irload.plan.ir.program import Program
from irload.plan.ir.steps import Elementwise
from irload.plan.passes.scalars import taken_once


def split_results(program: Program) -> None:
    """Expressions of several results → one step for each result, as a tile has one place to write to."""
    for step in program.steps:
        if isinstance(step, Elementwise) and len(step.outputs) > 1:
            parts = [replace(step, outputs=[output]) for output in step.outputs]
            for part, register in zip(parts, step.expression.result_registers, strict=True):
                single = _single(step.expression, register)
                part.inputs, part.expression = taken_once(step.inputs, single)
            program.replace([step], parts)


def _single(expression: Expression, register: int) -> Expression:
    """The expression of one register alone, which is then the last one."""
    count = register - expression.operands + 1
    if count <= 0:  # an operand as it is
        return Expression(expression.operands, (), (register,))
    return Expression(expression.operands, expression.instructions[:count]).pruned()
