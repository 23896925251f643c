"""Expressions and reductions of i32 and i64, over tensors of random shapes and strides between protected pages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irload.core import element as et
from irload.core.tensor import Array
from irload.ops.casting import convert
from irload.plan.backends.llvm.selection import TABLE
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ElementwiseStep, ReduceStep
from tests.harness.tiers import tiered
from tests.plan.llvm.harness import TARGETS, run_step
from tests.plan.llvm.strides import strided

I32, I64, F32, BOOL = (np.dtype(t) for t in (np.int32, np.int64, np.float32, bool))
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "divide": np.floor_divide,
    "remainder": np.fmod,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
}
RESULTS = dict.fromkeys(("equal", "less", "less_equal"), BOOL)


def numbers(rng: np.random.Generator, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """Random numbers, some of them at the ends of the range of the type."""
    if dtype == BOOL:
        return rng.random(shape) < 0.5
    if dtype == F32:
        ends = [2.0**31, -(2.0**31), 2.0**63, -(2.0**63), np.inf, -np.inf, np.nan, -0.0]
        x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 20, shape)).astype(np.float32)
        return np.where(rng.random(shape) < 0.3, rng.choice(np.array(ends, np.float32), shape), x)
    limits = np.iinfo(dtype)  # type: ignore[type-var]
    x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True) >> rng.integers(0, limits.bits, shape, dtype)
    return np.where(rng.random(shape) < 0.2, rng.choice(np.array([limits.min, limits.max, 0, -1], dtype), shape), x)


def shape_of(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.choice([1, 2, 3, 5, 8, 15, 16, 17, 33, 70], int(rng.integers(0, 4))))


def check(rng: np.random.Generator, step: ElementwiseStep, arrays: list[Array], expected: Array) -> None:
    assert TABLE.supports(step)
    for target in TARGETS:
        lay = strided(rng) if rng.random() < 0.6 else None
        (actual,) = run_step(step, arrays, target, at_end=bool(rng.random() < 0.5), laid=lay)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [I32, I64], ids=str)
@pytest.mark.parametrize("opcode", BINARY)
def test_two_operands(opcode: str, dtype: np.dtype[np.generic]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(tiered(4, 12)):
        shape = shape_of(rng)
        arrays = [numbers(rng, dtype, s) for s in (shape, shape[int(rng.integers(len(shape) + 1)) :])]
        if opcode in ("divide", "remainder"):
            arrays[1] = np.maximum(arrays[1] & np.iinfo(dtype).max, 1)  # type: ignore[type-var]
        with np.errstate(over="ignore"):
            expected = BINARY[opcode](*arrays)
        inputs, output = [Value(a.shape, dtype) for a in arrays], Value(shape, RESULTS.get(opcode, dtype))
        step = ElementwiseStep(inputs, [output], expression=Expression(2, (Instruction(opcode, (0, 1)),)))
        check(rng, step, arrays, expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", [I32, I64, F32, BOOL], ids=str)
@pytest.mark.parametrize("to", [et.i32, et.i64, et.f32], ids=str)
def test_conversions(source: np.dtype[np.generic], to: et.ElementType) -> None:
    rng = np.random.default_rng(1)
    for _ in range(tiered(4, 12)):
        x = numbers(rng, source, shape_of(rng))
        step = ElementwiseStep(
            [Value(x.shape, source)],
            [Value(x.shape, to.dtype)],
            expression=Expression(1, (Instruction("convert", (0,), dtype=to.dtype),)),
        )
        with np.errstate(all="ignore"):
            expected = convert(x, to)
        check(rng, step, [x], expected)


@pytest.mark.parametrize("dtype", [I32, I64], ids=str)
def test_several_types_in_one_expression(dtype: np.dtype[np.generic]) -> None:
    """select(a < b, -a, i64(x)) of integers, and whether it differs from 0."""
    instructions = (
        Instruction("less", (0, 1)),
        Instruction("negative", (0,)),
        Instruction("convert", (2,), dtype=dtype),
        Instruction("select", (3, 4, 5)),
        Instruction("nonzero", (6,)),
    )
    rng = np.random.default_rng(2)
    for _ in range(tiered(4, 12)):
        shape = shape_of(rng)
        a, b = (numbers(rng, dtype, shape) for _ in range(2))
        x = rng.standard_normal(shape).astype(np.float32) * 3
        inputs = [Value(shape, t) for t in (dtype, dtype, F32)]
        outputs = [Value(shape, dtype), Value(shape, BOOL)]
        step = ElementwiseStep(inputs, outputs, expression=Expression(3, instructions, (6, 7)))
        with np.errstate(over="ignore"):
            chosen = np.where(a < b, -a, x.astype(dtype))
        for target in TARGETS:
            actual = run_step(step, [a, b, x], target, laid=strided(rng))
            np.testing.assert_array_equal(actual[0], chosen)
            np.testing.assert_array_equal(actual[1], chosen != 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["sum", "min", "max"])
@pytest.mark.parametrize("dtype", [I32, I64, BOOL], ids=str)
def test_reductions(dtype: np.dtype[np.generic], kind: str) -> None:
    if (kind, dtype) == ("sum", BOOL):
        pytest.skip("booleans are not added")
    rng = np.random.default_rng(len(kind))
    for _ in range(tiered(6, 20)):
        shape = (*shape_of(rng), int(rng.choice([1, 7, 16, 40, 300])))
        axes = tuple(sorted({int(rng.integers(len(shape))) for _ in range(int(rng.integers(1, 4)))}))
        x = numbers(rng, dtype, shape)
        expected = {"sum": np.add, "min": np.minimum, "max": np.maximum}[kind].reduce(x, axes, dtype)
        step = ReduceStep([Value(shape, dtype)], [Value(expected.shape, dtype)], kind=kind, axes=axes)
        assert TABLE.supports(step)
        for target in TARGETS:
            lay = strided(rng) if rng.random() < 0.6 else None
            (actual,) = run_step(step, [x], target, at_end=bool(rng.random() < 0.5), laid=lay)
            np.testing.assert_array_equal(actual, expected)


def test_functions_of_numbers_are_not_supported() -> None:
    x = Value((4,), I64)
    for opcode in ("sqrt", "exp", "relu"):
        step = ElementwiseStep([x], [Value((4,), I64)], expression=Expression(1, (Instruction(opcode, (0,)),)))
        assert not TABLE.supports(step)
