"""Numbers in which steps differ become operands, without a change of results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ConvStep, ElementwiseStep
from irload.plan.passes.separate_numbers import SEPARATE, separate_numbers
from tests.plan.programs import Chain, constant, mapped, random, run, value

PAIRS = {"clamp": ((-0.5, 0.25), (-1.0, 2.0))}
"""The numbers of two steps, for opcodes with more than one number."""


def separated(steps: Sequence[Step], x: Value, data: Array) -> list[Step]:
    """The steps after the pass, whose results must equal the results of the given steps."""
    outputs = [step.output for step in steps]
    wanted = run(steps, {x: data}, outputs, passes=False)
    program = Program(list(steps), [x], outputs)
    separate_numbers(program)
    for a, b in zip(run(program.steps, {x: data}, outputs, passes=False), wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    return list(program.steps)


@pytest.mark.parametrize("opcode", SEPARATE)
def test_differing_numbers_become_operands(opcode):
    x, data = value(2, 33), random(2, 33)
    data[0, :5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    steps = [mapped(opcode, x, numbers=numbers) for numbers in PAIRS.get(opcode, ((0.75,), (3.0,)))]
    first, second = separated(steps, x, data)
    assert first.elementwise_part == second.elementwise_part
    assert not any(i.numbers for i in first.elementwise_part.instructions)


def test_equal_numbers_stay():
    x = value(4)
    steps = [mapped("multiply_number", x, numbers=(2.0,)) for _ in range(2)]
    assert separated(steps, x, random(4)) == steps


def test_only_the_numbers_that_differ_become_operands():
    x = value(4)
    pairs = [
        (Instruction("multiply_number", (0,), (scale,)), Instruction("add_number", (1,), (0.5,))) for scale in (2, 3)
    ]
    steps = [ElementwiseStep([x], [value(4)], expression=Expression(1, pair)) for pair in pairs]
    expected = Expression(2, (Instruction("multiply", (0, 1)), Instruction("add_number", (2,), (0.5,))))
    assert [step.elementwise_part for step in separated(steps, x, random(4))] == [expected] * 2


def test_operands_of_epilogues_keep_their_places():
    x, weights, bias = value(1, 3, 6, 6), constant(random(1, 3, 3, 1, 1)), constant(random(1, 3, 1, 1))
    one, none = (1, 1), (0, 0)
    geometry = {"strides": one, "dilations": one, "pads_begin": none, "pads_end": none}
    steps = [
        ConvStep(
            [x, weights, bias],
            [value(1, 3, 6, 6)],
            epilogue=Expression(2, (Instruction("multiply_number", (0,), (scale,)), Instruction("subtract", (1, 2)))),
            **geometry,
        )
        for scale in (2.0, 3.0)
    ]
    first, second = separated(steps, x, random(1, 3, 6, 6))
    assert first.elementwise_part == second.elementwise_part
    assert first.inputs[:3] == [x, weights, bias]


@pytest.mark.numpy_kernels
def test_numbers_as_either_operand() -> None:
    x = value(2, 3)
    data = random(2, 3)
    for function, plain in (
        ("subtract", np.subtract),
        ("divide", np.divide),
        ("power", np.power),
        ("maximum", np.maximum),
    ):
        for left in (True, False):
            chain = Chain()
            out = chain(function, *((3.0, x) if left else (x, 3.0)))
            (result,) = run(chain.steps, {x: data}, [out])
            with np.errstate(all="ignore"):
                expected = plain(np.float32(3), data) if left else plain(data, np.float32(3))
            np.testing.assert_array_equal(result, expected)
