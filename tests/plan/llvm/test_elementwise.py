"""Expressions over tensors of random shapes and strides."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.expressions import supports_expression
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ElementwiseStep
from tests.plan.llvm.harness import TARGETS, guarded, run_step
from tests.plan.llvm.strides import strided
from tests.plan.programs import constant, run, value

EXPRESSIONS = [
    Expression(1, (Instruction("relu", (0,)),)),
    Expression(2, (Instruction("add", (0, 1)),)),
    Expression(2, (Instruction("divide", (0, 1)), Instruction("gelu", (2,)))),
    Expression(3, (Instruction("multiply", (0, 1)), Instruction("add", (3, 2)), Instruction("sigmoid", (4,)))),
]


def random_step(rng: np.random.Generator) -> tuple[ElementwiseStep, list[Array]]:
    """An expression whose operands broadcast along random axes, some of them constant."""
    expression = EXPRESSIONS[int(rng.integers(len(EXPRESSIONS)))]
    rank = int(rng.integers(0, 5))
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 8, 17, 33], rank))
    inputs: list[Value] = []
    arrays: list[Array] = []
    for _ in range(expression.operands):
        own = [1 if rng.random() < 0.3 else n for n in shape][int(rng.integers(0, rank + 1)) if rank else 0 :]
        array = rng.standard_normal(own).astype(np.float32)
        if rng.random() < 0.3:
            inputs.append(constant(array))
        else:
            inputs.append(value(*own))
            arrays.append(array)
    shape = np.broadcast_shapes(*(v.shape for v in inputs))
    return ElementwiseStep(inputs, [value(*shape)], expression=expression), arrays


def agree(step: ElementwiseStep, arrays: list[Array], outputs: list[Array]) -> None:
    values = dict(zip([v for v in step.inputs if not v.is_constant], arrays, strict=True))
    with np.errstate(all="ignore"):
        wanted = run([step], values, step.outputs, passes=False)
    for a, b in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(80))
def test_random_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, arrays = random_step(rng)
    target, threads = TARGETS[seed % len(TARGETS)], int(rng.integers(1, 4))
    lay = strided(rng) if seed % 3 else None
    agree(step, arrays, run_step(step, arrays, target, threads, at_end=bool(seed % 2), laid=lay))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(70_001,), (3, 9001), (300, 40), (2, 5, 70, 65)], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_many_units(shape: tuple[int, ...], threads: int, target: object) -> None:
    """Rows longer than a unit, and units of many rows, shared by threads."""
    rng = np.random.default_rng(0)
    x, bias = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[-1:]))
    step = ElementwiseStep([value(*shape), constant(bias)], [value(*shape)], expression=EXPRESSIONS[1])
    (output,) = run_step(step, [x], target, threads)  # type: ignore[arg-type]
    np.testing.assert_array_equal(output, x + bias)


def test_several_results() -> None:
    expression = Expression(2, (Instruction("add", (0, 1)), Instruction("negative", (2,))), (1, 3, 2, 0))
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3, 37)).astype(np.float32)
    step = ElementwiseStep([value(3, 37), value(3, 37)], [value(3, 37) for _ in range(4)], expression=expression)
    for target in TARGETS:
        for actual, wanted in zip(run_step(step, [a, b], target), (b, -(a + b), a + b, a), strict=True):
            np.testing.assert_array_equal(actual, wanted)


def test_a_broadcast_of_stride_zero() -> None:
    step = ElementwiseStep(
        [Value((4, 33), np.dtype(np.float32)), value(4, 33)], [value(4, 33)], expression=EXPRESSIONS[1]
    )
    row, x = np.float32([[1], [2], [3], [4]]), np.ones((4, 33), np.float32)

    def lay(v: Value, plain: Array) -> Array:
        if v is not step.inputs[0]:
            return plain
        result = np.broadcast_to(guarded((4, 1)), (4, 33))
        result.flags.writeable = True
        return result

    for target in TARGETS:
        (output,) = run_step(step, [np.broadcast_to(row, (4, 33)), x], target, laid=lay)
        np.testing.assert_array_equal(output, x + row)


def test_unsupported_expressions() -> None:
    x = value(3)
    for exponent, supported in ((0.3, False), (3.0, True)):
        expression = Expression(1, (Instruction("power_number", (0,), (exponent,)),))
        assert supports_expression(expression) is supported
        assert TABLE.supports(ElementwiseStep([x], [value(3)], expression=expression)) is supported
