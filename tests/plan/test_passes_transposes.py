"""Elementwise work after transposes moves into the epilogue before them; pairs of transposes cancel."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.executor import Executor
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.steps import ConvStep, ElementwiseStep, MatMulStep, NormalizeStep, ReshapeStep, TransposeStep
from irload.plan.passes.pipeline import optimize
from tests.plan.programs import Chain, constant, random, run, value

FIRST = (0, 3, 1, 2)
LAST = (0, 2, 3, 1)


def permute(c: Chain, x: Value, order: tuple[int, ...]) -> Value:
    return c.add(TransposeStep([x], [value(*(x.shape[k] for k in order))], order=order))


def product(c: Chain, x: Value, channels: int) -> Value:
    return c.add(MatMulStep([x, constant(random(x.shape[-1], channels))], [value(*x.shape[:-1], channels)]))


def both(write: object, *shapes: tuple[int, ...]) -> tuple[list[Step], list[Array]]:
    """The remaining steps, and the result with and without the passes."""
    results: list[Array] = []
    steps: list[Step] = []
    for passes in (True, False):
        values, c = [value(*s) for s in shapes], Chain()
        out = write(c, *values)
        arrays = {v: random(*v.shape, seed=k) for k, v in enumerate(values)}
        results += run(c.steps, arrays, [out], passes=passes)
        values, c = [value(*s) for s in shapes], Chain()
        steps = c.optimized(values, [write(c, *values)])
    np.testing.assert_allclose(results[0], results[1], 1e-5, 1e-6)
    return steps, results


def block(c: Chain, x: Value) -> Value:
    """The block of ConvNeXt: tokens through a matmul, scaled per channel, added to the image."""
    tokens = c.add(NormalizeStep([x], [value(*x.shape)], axes=(3,), eps=1e-5))
    image = permute(c, tokens, FIRST)
    scaled = c("multiply", permute(c, product(c, tokens, 6), FIRST), constant(random(1, 6, 1, 1, seed=8)))
    return c("relu", c("add", scaled, image))


def test_scale_and_residual_after_a_transpose() -> None:
    steps, _ = both(block, (2, 3, 4, 6))
    assert [type(s) for s in steps] == [NormalizeStep, MatMulStep, TransposeStep]
    assert isinstance(steps[1], MatMulStep)
    assert str(steps[1].epilogue) == "multiply+add+relu"
    assert steps[1].inputs[3] is steps[0].output


def test_a_function_after_a_reshape() -> None:
    def write(c: Chain, x: Value) -> Value:
        same = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
        image = c.add(ConvStep([x, constant(random(1, 5, 3, 1, 1))], [value(2, 5, 4, 6)], **same))
        tokens = c.add(ReshapeStep([image], [value(2, 5, 24)]))
        return c("multiply", c("sigmoid", permute(c, tokens, (0, 2, 1))), 3)

    steps, _ = both(write, (2, 3, 4, 6))
    assert [type(s) for s in steps] == [ConvStep, ReshapeStep, TransposeStep]
    assert isinstance(steps[0], ConvStep)
    assert str(steps[0].epilogue) == "sigmoid+multiply_number"


def test_an_elementwise_step_after_two_transposes() -> None:
    steps, _ = both(
        lambda c, x: c("add", permute(c, product(c, x, 5), (1, 2, 0)), constant(random(4, 1, 2))), (2, 4, 7)
    )
    assert [type(s) for s in steps] == [MatMulStep, TransposeStep]
    steps, _ = both(lambda c, x: c("tanh", permute(c, permute(c, product(c, x, 5), LAST), FIRST)), (2, 3, 4, 6))
    assert [type(s) for s in steps] == [MatMulStep, TransposeStep, TransposeStep]


@pytest.mark.parametrize("case", ["another operand", "a reshape between", "taken again", "no fresh result", "wider"])
def test_transposes_without_gain_are_preserved(case: str) -> None:
    def write(c: Chain, x: Value, y: Value) -> Value:
        fresh = x if case == "no fresh result" else product(c, x, 6)
        turned = permute(c, fresh, (0, 2, 1))
        if case == "another operand":
            return c("add", turned, y)
        if case == "a reshape between":
            return c("add", c.add(ReshapeStep([turned], [value(2, 24)])), constant(random(24)))
        if case == "taken again":
            return c("subtract", c("relu", turned), c("exp", turned))
        if case == "wider":
            return c("add", turned, constant(random(3, 2, 6, 4)))
        return c("relu", turned)

    steps, _ = both(write, (2, 4, 6), (2, 6, 4))
    assert isinstance(steps[-1], ElementwiseStep)


def test_a_pair_of_transposes_cancels() -> None:
    x, c = value(2, 3, 4, 6), Chain()
    there = permute(c, c("relu", x), FIRST)
    back = permute(c, there, LAST)
    out = c.add(ReshapeStep([back], [value(24, 6)]))
    plan = Executor(optimize(Program(c.steps, [x], [out])), Options(1))
    assert [type(b.step) for b in plan.kernels] == [ElementwiseStep]
