"""Move constants of one element into instructions: multiply(x, 3) → multiply_number 3 (x). Merge equal inputs.

Later passes can then match a computation by its expression alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import frexp

from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import ElementwiseStep

LEFT = {
    "add": "add_number",
    "multiply": "multiply_number",
    "maximum": "maximum_number",
    "minimum": "minimum_number",
    "subtract": "number_subtract",
    "divide": "number_divide",
}
RIGHT = {**LEFT, "subtract": "add_number", "divide": "divide_number", "power": "power_number"}
"""By opcode, the instruction whose second argument (RIGHT) or first argument (LEFT) is a number."""

POWERS = {2.0: "square", 0.5: "sqrt"}


def fold_scalars(program: Program) -> None:
    """Move scalar constants into the instructions of every Elementwise, and remove duplicate inputs."""
    program.steps = [_folded(step) if isinstance(step, ElementwiseStep) else step for step in program.steps]


def _folded(step: ElementwiseStep) -> ElementwiseStep:
    inputs, expression = used_inputs(step.inputs, with_scalars(step.expression, step.inputs))
    same = inputs == step.inputs and expression == step.expression
    return step if same else replace(step, inputs=inputs, expression=expression)


def with_scalars(expression: Expression, operands: Sequence[Value]) -> Expression:
    """Return the expression with constants of one element as numbers. Instructions on constants alone are unchanged."""
    numbers = {
        k: float(v.constant.reshape(-1)[0]) for k, v in enumerate(operands) if v.size == 1 and v.constant is not None
    }
    instructions: list[Instruction] = []
    for i in expression.instructions:
        known = [a in numbers for a in i.args]
        if len(i.args) == 2 and known[1] and not known[0] and i.opcode in RIGHT:
            instructions.append(_right(i, numbers[i.args[1]]))
        elif len(i.args) == 2 and known[0] and not known[1] and i.opcode in LEFT:
            instructions.append(Instruction(LEFT[i.opcode], i.args[1:], (numbers[i.args[0]],)))
        else:
            instructions.append(i)
    return Expression(expression.operands, tuple(instructions), expression.results)


def _right(i: Instruction, number: float) -> Instruction:
    """Return a binary instruction with a number as its second argument.

    Division by a power of two becomes multiplication by its reciprocal, which is exact.
    """
    if i.opcode == "subtract":
        number = -number
    if i.opcode == "power" and number in POWERS:
        return Instruction(POWERS[number], i.args[:1])
    if i.opcode == "divide" and abs(frexp(number)[0]) == 0.5 and 2**-60 < abs(number) < 2**60:
        return Instruction("multiply_number", i.args[:1], (1 / number,))
    return Instruction(RIGHT[i.opcode], i.args[:1], (number,))


def used_inputs(inputs: Sequence[Value], expression: Expression, leading: int = 0) -> tuple[list[Value], Expression]:
    """Return the inputs that the expression uses, without duplicates, and the expression over them.

    The first `leading` inputs, which are not operands of the expression, are kept. If there are any, the expression is
    an epilogue: operand 0 is the step's result, and the remaining inputs follow.
    """
    first = 1 if leading else 0
    operands: list[Value | None] = [*([None] * first), *inputs[leading:]]
    used = {a for i in expression.instructions for a in i.args}
    kept: list[Value | None] = []
    names: dict[int, int] = {}
    for k, value in enumerate(operands):
        if k >= first and k not in used and expression.instructions:
            continue
        at = next((n for n, v in enumerate(kept) if v is value and value is not None), None)
        if at is None:
            at = len(kept)
            kept.append(value)
        names[k] = at
    for k in range(len(expression.instructions)):
        names[expression.operands + k] = len(kept) + k
    return [*inputs[:leading], *(v for v in kept if v is not None)], expression.renamed(len(kept), names)
