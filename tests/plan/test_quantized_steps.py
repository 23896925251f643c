"""Steps on bytes: their rules, the composition of factors, and NumPy's results, which are exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.ops.convolution.forward import convolve
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import PlanInvalid, Program, Value
from irload.plan.ir.steps import IDENTITY, ConvStep, ElementwiseStep, Integers, MatMulStep, PoolStep
from irload.plan.ir.verify import verify
from irload.plan.passes.quantized.affine import compose_factors
from tests.plan.programs import constant, run

F32, U8 = np.dtype(np.float32), np.dtype(np.uint8)
RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (2, 6, 7, 8)).astype(np.uint8)
W = RNG.integers(-128, 128, (2, 5, 3, 3, 2)).astype(np.int8)
EXACT = convolve(X.astype(np.int64) - 3, W.astype(np.int64), (2, 1), (1, 1), [(1, 1), (0, 1)])


def conv(
    data: Value,
    weights: Value,
    *operands: Value,
    out: np.dtype[np.generic] = F32,
    epilogue: Expression = IDENTITY,
    zero_point: int = 3,
) -> ConvStep:
    """A convolution with the geometry of EXACT: of data like X by weights like W."""
    return ConvStep(
        [data, weights, *operands],
        [Value(EXACT.shape, out)],
        strides=(2, 1),
        dilations=(1, 1),
        pads_begin=(1, 0),
        pads_end=(1, 1),
        integers=Integers(zero_point),
        epilogue=epilogue,
    )


def per_channel(seed: int) -> Array:
    return np.random.default_rng(seed).uniform(0.001, 1, (1, 10, 1, 1)).astype(np.float32)


def chain(*links: tuple[object, ...], operands: int = 1) -> Expression:
    """An expression of links (opcode, register of a second operand or None, numbers…), each applied to the previous."""
    instructions: list[Instruction] = []
    for opcode, other, *numbers in links:
        last = operands + len(instructions) - 1 if instructions else 0
        args = (last,) if other is None else (last, other)
        instructions.append(Instruction(opcode, args, tuple(numbers)))  # type: ignore[arg-type]
    return Expression(operands, tuple(instructions))


TO_BYTES = (
    Instruction("clamp", (0,), (0.0, 255.0)),
    Instruction("round", (1,)),
    Instruction("convert", (2,), (), U8),
)


def test_numpy_convolves_bytes() -> None:
    data = Value(X.shape, U8)
    step = conv(data, constant(W))
    np.testing.assert_array_equal(run([step], {data: X}, [step.output])[0], EXACT)


def test_numpy_gives_bytes_to_a_pooling_and_an_expression() -> None:
    data = Value(X.shape, U8)
    first = conv(data, constant(W), out=U8, epilogue=Expression(1, TO_BYTES))
    pair = {"kernel": (2, 2), "strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0)}
    shape = (*EXACT.shape[:2], EXACT.shape[2] - 1, EXACT.shape[3] - 1)
    pool = PoolStep([first.output], [Value(shape, U8)], kind="max", **pair)  # type: ignore[arg-type]
    wide = Expression(1, (Instruction("convert", (0,), (), F32), Instruction("add_number", (1,), (0.5,))))
    last = ElementwiseStep([pool.output], [Value(shape, F32)], expression=wide)
    (output,) = run([first, pool, last], {data: X}, [last.output], passes=False)
    bytes = np.clip(EXACT, 0, 255)
    windows = np.lib.stride_tricks.sliding_window_view(bytes, (2, 2), (2, 3))
    np.testing.assert_array_equal(output, windows.max((-1, -2)) + 0.5)


@pytest.mark.parametrize("transposed", [False, True])
def test_numpy_multiplies_bytes(transposed: bool) -> None:
    a, b = X.reshape(2, 42, 8), W.reshape(-1)[: 8 * 9].reshape(8, 9)
    data, out = Value(a.shape, U8), Value((2, 42, 9), F32)
    stored = np.ascontiguousarray(b.T) if transposed else b
    step = MatMulStep([data, constant(stored)], [out], transpose_b=transposed, integers=Integers(128))
    output = run([step], {data: a}, [out])[0]
    np.testing.assert_array_equal(output, (a.astype(np.int64) - 128) @ b.astype(np.int64))


BROKEN: dict[str, Callable[[], ConvStep]] = {
    "the dtype of the data": lambda: conv(Value(X.shape, F32), constant(W)),
    "the dtype of the weights": lambda: conv(Value(X.shape, U8), constant(W.astype(np.float32))),
    "not constant": lambda: conv(Value(X.shape, U8), Value(W.shape, np.dtype(np.int8))),
    "the zero point is a byte": lambda: conv(Value(X.shape, U8), constant(W), zero_point=256),
    "the result is f32 or u8": lambda: conv(Value(X.shape, U8), constant(W), out=np.dtype(np.int32)),
    "the dtype is float32, expected uint8": lambda: conv(
        Value(X.shape, U8), constant(W), epilogue=Expression(1, TO_BYTES)
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_verify_detects(message: str) -> None:
    step = BROKEN[message]()
    with pytest.raises(PlanInvalid, match=message):
        verify(Program([step], [v for v in step.inputs if not v.is_constant], step.outputs))


def test_f32_has_no_integers() -> None:
    step = PoolStep(
        [Value((1, 2, 4), U8)],
        [Value((1, 2, 3), F32)],
        kind="max",
        kernel=(2,),
        strides=(1,),
        dilations=(1,),
        pads_begin=(0,),
    )
    with pytest.raises(PlanInvalid, match="the dtype is float32, expected uint8"):
        step.check()


COMPOSED: dict[str, tuple[Expression, int]] = {
    "a scale, a bias and the scale of the result": (
        chain(("multiply", 1), ("add", 2), ("multiply_number", None, 3.0), ("add_number", None, 1.0), operands=3),
        2,
    ),
    "terms before factors": (chain(("add", 1), ("multiply", 2), ("add_number", None, -4.0), operands=3), 2),
    "a ReLU before a clamp": (
        chain(("multiply", 1), ("relu", None), ("multiply_number", None, 2.0), ("clamp", None, 0.0, 9.0), operands=2),
        2,
    ),
    "a ReLU before a clamp that is not needed": (chain(("multiply", 1), ("relu", None), ("exp", None), operands=2), 3),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_factors_are_composed(name: str) -> None:
    epilogue, count = COMPOSED[name]
    data = Value(X.shape, U8)
    operands = [constant(per_channel(k)) for k in range(epilogue.operands - 1)]
    step = conv(data, constant(W // 16), *operands, epilogue=epilogue)
    program = Program([step], [data], step.outputs)
    (wanted,) = run([step], {data: X}, step.outputs, passes=False)
    compose_factors(program)
    verify(program)
    (composed,) = program.steps
    assert len(composed.elementwise_part.instructions) == count
    (output,) = run([composed], {data: X}, step.outputs, passes=False)
    np.testing.assert_allclose(output, wanted, 1e-5, 1e-4)


@pytest.mark.parametrize("scale", [0.5, None])
def test_scales_of_a_residual_are_composed(scale: float | None) -> None:
    """(bytes of Σ · a) · 0.1 + residual · 0.5, times 3. Without a scale of the residual, the sum is multiplied by 3."""
    links = [Instruction("multiply", (0, 2)), Instruction("clamp", (3,), (0.0, 255.0)), Instruction("round", (4,))]
    links += [Instruction("convert", (5,), (), U8), Instruction("convert", (6,), (), F32)]
    links += [Instruction("multiply_number", (7,), (0.1,)), Instruction("convert", (1,), (), F32)]
    if scale is not None:
        links.append(Instruction("multiply_number", (9,), (scale,)))
    last = 2 + len(links)
    links += [Instruction("add", (8, last)), Instruction("multiply_number", (last + 1,), (3.0,))]
    data, residual = Value(X.shape, U8), Value(EXACT.shape, U8)
    bytes = np.random.default_rng(1).integers(0, 256, EXACT.shape).astype(np.uint8)
    step = conv(data, constant(W), residual, constant(per_channel(0)), epilogue=Expression(3, tuple(links)))
    program = Program([step], [data, residual], step.outputs)
    given = {data: X, residual: bytes}
    (wanted,) = run([step], given, step.outputs, passes=False)
    compose_factors(program)
    verify(program)
    (composed,) = program.steps
    opcodes = [i.opcode for i in composed.elementwise_part.instructions]
    last = ["multiply_number", "add"] if scale else ["add", "multiply_number"]
    assert opcodes == ["multiply", "clamp", "round", "convert", "multiply_number", *last]
    (output,) = run([composed], given, step.outputs, passes=False)
    np.testing.assert_allclose(output, wanted, 1e-5, 1e-4)


def test_a_value_used_twice_is_computed_once() -> None:
    """As a PReLU: max(x, x · 0.25) with x = Σ · a + b."""
    links = (
        Instruction("multiply", (0, 1)),
        Instruction("add", (3, 2)),
        Instruction("multiply_number", (4,), (0.25,)),
        Instruction("maximum", (4, 5)),
    )
    data = Value(X.shape, U8)
    operands = [constant(per_channel(0)), constant(per_channel(1))]
    step = conv(data, constant(W), *operands, epilogue=Expression(3, links))
    program = Program([step], [data], step.outputs)
    compose_factors(program)
    assert program.steps == [step]
