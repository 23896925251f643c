"""Elementwise expressions, copies and joins of operands with any strides and broadcasting, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.elementwise import elementwise_parts
from irload.plan.backends.numpy.kernels.instructions import TABLE
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.opcodes import OPCODES
from irload.plan.threads import run_part
from models import ir
from tests.fuzz.programs.thresholds import lowered_thresholds
from tests.plan.exact import Exact, same


def random_layout(net: Exact, rng: np.random.Generator, shape: tuple[int, ...]) -> ir.Ref:
    """A value of a shape with one of several memory layouts."""
    rank, roll = len(shape), rng.random()
    if roll < 0.2 or not rank:
        return net.input(*shape)
    if roll < 0.3:
        return net.weights(*shape)
    if roll < 0.6:
        order = [int(k) for k in rng.permutation(rank)]
        return net.transpose(
            net.op("ReLU", net.input(*(shape[order.index(k)] for k in range(rank)))), *np.argsort(np.argsort(order))
        )
    axis = int(rng.integers(0, rank))
    wide = tuple(3 * n if k == axis else n for k, n in enumerate(shape))
    return net.ops("Split", net.op("Abs", net.input(*wide)), net.constant(axis), outputs=3, num_splits=3)[1]


def broadcast(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another one."""
    return tuple(n if rng.random() < 0.65 else 1 for n in shape)[int(rng.integers(0, len(shape) + 1)) :]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
@pytest.mark.parametrize("seed", range(24))
def test_expressions(seed: int, small: bool) -> None:
    rng = np.random.default_rng([seed, 6])
    net = Exact(seed)
    shape = tuple(int(n) for n in rng.integers(1, 7, seed % 5))
    y = random_layout(net, rng, shape)
    for _ in range(int(rng.integers(1, 6))):
        roll = rng.random()
        if roll < 0.3:
            y = net.op(str(rng.choice(["ReLU", "Abs", "Negative", "Floor", "Ceiling"])), y)
        elif roll < 0.4:
            y = net.op("Clamp", y, min=-1.5, max=2.5)
        else:
            type = str(rng.choice(["Add", "Subtract", "Maximum", "Minimum", "Multiply"]))
            other = random_layout(net, rng, broadcast(rng, shape)) if rng.random() < 0.85 else y
            y = net.op(type, *((y, other) if rng.random() < 0.6 else (other, y)))
    with lowered_thresholds() if small else nullcontext():
        assert same(net.model(y), net.shapes) <= {"tiles", "copy"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small blocks"])
@pytest.mark.parametrize("seed", range(20))
def test_joins_and_moves(seed: int, small: bool) -> None:
    rng = np.random.default_rng([seed, 7])
    net = Exact(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, 2 + seed % 3))
    axis = int(rng.integers(0, len(shape)))
    parts = [
        random_layout(net, rng, tuple(int(rng.integers(1, 4)) if k == axis else n for k, n in enumerate(shape)))
        for _ in range(int(rng.integers(1, 5)))
    ]
    parts.append(random_layout(net, rng, shape))
    y = net.concat(*parts, *parts[: int(rng.integers(0, 2))], axis=axis)
    outputs = [y]
    if rng.random() < 0.5:
        outputs.append(net.op("ReLU", y))
    if rng.random() < 0.5:
        y = net.transpose(y, *(int(k) for k in rng.permutation(len(shape))))
    y = net.reshape(y, -1) if rng.random() < 0.7 else y
    outputs.append(net.op("Abs", y) if rng.random() < 0.5 else y)
    with lowered_thresholds() if small else nullcontext():
        assert same(net.model(*outputs), net.shapes) <= {"tiles", "copy", "slices"}


def erf(x: Array) -> Array:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x)


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def cubic(x: Array) -> Array:
    return (2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)


Reference = Callable[..., Array]

REFERENCES: dict[str, tuple[Reference, tuple[float, ...]]] = {
    **{n: (getattr(np, n), ()) for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")},
    **{n: (getattr(np, n), ()) for n in ("square", "sqrt", "negative", "abs", "exp", "log", "tanh", "sin", "cos")},
    **{n: (getattr(np, n), ()) for n in ("floor", "ceil")},
    "add_number": (lambda x: x + 1.5, (1.5,)),
    "multiply_number": (lambda x: x * 1.5, (1.5,)),
    "divide_number": (lambda x: x / 1.5, (1.5,)),
    "maximum_number": (lambda x: np.maximum(x, 0.5), (0.5,)),
    "minimum_number": (lambda x: np.minimum(x, 0.5), (0.5,)),
    "power_number": (lambda x: x**3.0, (3.0,)),
    "number_subtract": (lambda x: 1.5 - x, (1.5,)),
    "number_divide": (lambda x: 1.5 / x, (1.5,)),
    "round": (np.rint, ()),
    "round_f16": (lambda x: x.astype(np.float16), ()),
    "round_bf16": (lambda x: x.astype(np.float32).astype(bfloat16).astype(np.float64), ()),
    "round_f8e4m3": (lambda x: x.astype(np.float32).astype(float8_e4m3fn).astype(np.float64), ()),
    "round_f8e5m2": (lambda x: x.astype(np.float32).astype(float8_e5m2).astype(np.float64), ()),
    "relu": (lambda x: np.maximum(x, 0), ()),
    "clamp": (lambda x: np.clip(x, -0.5, 0.75), (-0.5, 0.75)),
    "clip": (np.clip, ()),
    "sigmoid": (sigmoid, ()),
    "swish": (lambda x: x * sigmoid(x), ()),
    "hard_sigmoid": (lambda x: np.clip(0.3 * x + 0.4, 0, 1), (0.3, 0.4)),
    "hard_swish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), ()),
    "erf": (erf, ()),
    "gelu": (lambda x: x / 2 * (1 + erf(x / 2**0.5)), ()),
    "gelu_tanh": (lambda x: x / 2 * (1 + np.tanh(cubic(x))), ()),
    "elu": (lambda x: np.where(x > 0, x, 0.7 * np.expm1(np.minimum(x, 0))), (0.7,)),
    "mish": (lambda x: x * np.tanh(softplus(x)), ()),
    "softplus": (softplus, ()),
    "convert": (lambda x: x, ()),
}


def test_every_instruction_has_a_reference() -> None:
    assert REFERENCES.keys() == TABLE.keys()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", REFERENCES)
def test_instructions(name: str, in_place: bool) -> None:
    reference, numbers = REFERENCES[name]
    count = OPCODES[name].arity
    rng = np.random.default_rng(5)
    x, y, z = (rng.uniform(-9, 9, 200_000).astype(np.float32) for _ in range(3))
    x[:7] = [0, -0.0, 0.5, -0.5, 20, 21, -20]
    if name in ("sqrt", "log", "power", "number_divide"):
        x = np.abs(x) + np.float32(0.01)
    wanted = reference(*(v.astype(np.float64) for v in (x, y, z)[:count]))
    arrays = [v.copy() for v in (x, y, z)[:count]]
    out = arrays[0] if in_place else np.full_like(x, np.nan)
    expression = Expression(count, (Instruction(name, tuple(range(count)), numbers),))
    for part in elementwise_parts(expression, arrays, out, Scratch()):
        run_part(part)
    np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=2e-6)
    if not in_place:
        for array, before in zip(arrays, (x, y, z), strict=False):
            np.testing.assert_array_equal(array, before, "operands are not written over")


@pytest.mark.parametrize("name", ["swish", "hard_sigmoid"])
def test_instructions_take_their_numbers(name: str) -> None:
    x = np.linspace(-5, 5, 101).astype(np.float32)
    numbers, wanted = {
        "swish": ((1.5,), x * sigmoid(1.5 * x)),
        "hard_sigmoid": ((-0.2, 0.7), np.clip(0.7 - 0.2 * x, 0, 1)),
    }[name]
    out = np.empty_like(x)
    for part in elementwise_parts(Expression(1, (Instruction(name, (0,), numbers),)), [x], out, Scratch()):
        run_part(part)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
