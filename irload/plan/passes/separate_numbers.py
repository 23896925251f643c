"""Turn numbers in which otherwise equal expressions differ into operands: multiply_number 3 (x) → multiply(x, 3).

Numbers are compiled into kernels. A quantized model repeats layers with different scales; if the scales are operands,
the layers share kernels.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import ElementwiseStep, ExpressionStep

F32 = np.dtype(np.float32)

SEPARATE = {
    "add_number": "add",
    "multiply_number": "multiply",
    "divide_number": "divide",
    "number_subtract": "subtract",
    "number_divide": "divide",
    "clamp": "clip",
}
"""The instruction that reads operands instead of numbers, by opcode."""

Numbers = dict[int, tuple[float, ...]]


def separate_numbers(program: Program) -> None:
    """Turn f32 numbers into operands in steps of one type whose expressions differ only in these numbers."""
    alike: dict[object, list[ExpressionStep]] = {}
    for step in program.steps:
        if isinstance(step, ExpressionStep):
            alike.setdefault((type(step), _without_numbers(step.elementwise_part)), []).append(step)
    for steps in alike.values():
        first, *others = map(_numbers, steps)
        differing = {k for k, numbers in first.items() if any(other.get(k, numbers) != numbers for other in others)}
        for step in steps if differing else ():
            program.replace([step], [_separated(step, differing)])


def _numbers(step: ExpressionStep) -> Numbers:
    """Return the numbers that may become operands, by the index of their instruction."""
    expression, inputs = step.elementwise_part, [v.dtype for v in step.inputs]
    types = expression.types(inputs if isinstance(step, ElementwiseStep) else [F32, *inputs[step.MAIN_INPUTS :]])
    return {
        k: i.numbers
        for k, i in enumerate(expression.instructions)
        if i.opcode in SEPARATE and types[i.args[0]] == F32 and not any(map(math.isnan, i.numbers))
    }


def _without_numbers(expression: Expression) -> Expression:
    instructions = (replace(i, numbers=()) if i.opcode in SEPARATE else i for i in expression.instructions)
    return replace(expression, instructions=tuple(instructions))


def _separated(step: ExpressionStep, differing: AbstractSet[int]) -> ExpressionStep:
    """Return the step with the numbers of the `differing` instructions as its last inputs."""
    old, numbers, shape = step.elementwise_part, _numbers(step), (1,) * len(step.outputs[0].shape)
    chosen = {k: numbers[k] for k in sorted(differing & numbers.keys())}
    flat = [number for values in chosen.values() for number in values]
    shift = {r: r + (len(flat) if r >= old.operands else 0) for r in range(old.operands + len(old.instructions))}
    new = old.renamed(old.operands + len(flat), shift)
    instructions, operands = list(new.instructions), iter(range(old.operands, new.operands))
    for k, values in chosen.items():
        args = [next(operands) for _ in values]
        opcode, (x,) = instructions[k].opcode, instructions[k].args
        instructions[k] = Instruction(SEPARATE[opcode], (*args, x) if opcode.startswith("number") else (x, *args))
    expression = replace(new, instructions=tuple(instructions))
    inputs = [*step.inputs, *(Value.of(np.full(shape, number, F32)) for number in flat)]
    return step.with_expression(inputs, expression)
