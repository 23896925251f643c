"""Functions of vectors against f64: accuracy at every exponent, and the ends of the range."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from ml_dtypes import float8_e4m3fn, float8_e5m2

pytest.importorskip("llvmlite")

from irload.core.tensor import Array
from irload.plan.backends.llvm.expressions import supports_expression
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.numpy.kernels.instructions import TABLE
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.opcodes import OPCODES
from tests.plan.llvm.functions import applied, mapped
from tests.plan.llvm.harness import TARGETS

SMALLEST = 1.1754943508222875e-38
NUMBERS = {"elu": (0.7,), "clamp": (-0.5, 2.0), "hard_sigmoid": (0.2, 0.5), "power_number": (3.0,)}
LEFT_TO_NUMPY = {"power"}
UNARY = [n for n, o in OPCODES.items() if o.arity == 1 and n in TABLE and o.result != "given"]

_erfc = np.vectorize(math.erfc, otypes=[float])
_erf = np.vectorize(math.erf, otypes=[float])


def _mish(x: Array) -> Array:
    e = np.exp(np.minimum(x, 40))
    return x * (e * (e + 2) / (e * (e + 2) + 2))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu_tanh(x: Array) -> Array:
    return x * _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


Reference = Callable[[Array], Array]

FUNCTIONS: list[tuple[str, Reference, float, float]] = [
    ("exp", np.exp, 1e-7, -np.inf),
    ("log", np.log, 1e-7, -np.inf),
    ("tanh", np.tanh, 2e-7, -np.inf),
    ("sin", np.sin, 1.3e-7, -np.inf),
    ("cos", np.cos, 1.3e-7, -np.inf),
    ("sigmoid", _sigmoid, 2e-7, -87),
    ("swish", lambda x: x * _sigmoid(x), 2e-7, -80),
    ("softplus", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), 2e-7, -87),
    ("mish", _mish, 2.4e-7, -80),
    ("elu", lambda x: np.where(x > 0, x, np.float32(0.7) * np.expm1(np.minimum(x, 0))), 2e-7, -np.inf),
    ("erf", _erf, 2e-7, -np.inf),
    ("gelu", lambda x: x / 2 * _erfc(-x / math.sqrt(2)), 3.5e-7, -12.9),
    ("gelu_tanh", _gelu_tanh, 3.5e-7, -1),
    ("gelu_tanh", _gelu_tanh, 5e-6, -9),
]
"""Opcode, reference, the relative error allowed, and the lower bound of its range: below it f32 loses bits."""

targets = pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)


def every_exponent(mantissas: int) -> Array:
    """Numbers of both signs, subnormal to largest."""
    low = np.random.default_rng(0).integers(0, 1 << 23, (255, mantissas), dtype=np.uint32)
    bits = (np.arange(255, dtype=np.uint32)[:, None] << 23 | low).reshape(-1)
    return np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)


def one(opcode: str, x: Array, target: Target) -> Array:
    """One instruction of a vector."""
    (output,) = mapped(Expression(1, (Instruction(opcode, (0,), NUMBERS.get(opcode, ())),)), [x], target)
    return output


@targets
@pytest.mark.parametrize(("opcode", "reference", "allowed", "start"), FUNCTIONS)
def test_accuracy(opcode: str, reference: Reference, allowed: float, start: float, target: Target) -> None:
    x = every_exponent(256)
    output = one(opcode, x, target).astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.float64))
        overflows = np.isinf(wanted.astype(np.float32))
        assert np.array_equal(np.isnan(output), np.isnan(wanted))
        assert np.array_equal(output[overflows], wanted.astype(np.float32)[overflows])
    finite = np.isfinite(wanted) & ~overflows
    x, wanted = x[finite], wanted[finite]
    error = np.abs(output[finite] - wanted)
    assert (error / np.maximum(np.abs(wanted), SMALLEST))[x >= start].max() <= allowed
    assert error[np.abs(wanted) < 1e-36].max(initial=0) <= 1e-36


ENDS = np.float32(
    [math.nan, math.inf, -math.inf, 0, -0.0, 3e38, -3e38, 1e-45, -1e-45, 88.7, 88.8, -87.4, -104, 0.5, 1, -1]
)


@targets
@pytest.mark.parametrize("opcode", UNARY)
def test_the_ends_of_the_range(opcode: str, target: Target) -> None:
    """For NaN, infinities and zeros, the results equal the results of NumPy's kernels."""
    numbers = NUMBERS.get(opcode, (0.5,) * OPCODES[opcode].numbers[-1])
    expression = Expression(1, (Instruction(opcode, (0,), numbers),))
    assert supports_expression(expression)
    (output,) = mapped(expression, [ENDS], target)
    spare: list[Array] = []

    def take() -> Array:
        spare.append(np.empty_like(ENDS))
        return spare[-1]

    wanted = np.empty_like(ENDS)
    with np.errstate(all="ignore"):
        for function, arguments in TABLE[opcode]([ENDS], wanted, [np.float32(n) for n in numbers], take):
            function(*arguments)
    np.testing.assert_allclose(output, wanted, rtol=3e-7, atol=1e-37)


@targets
@pytest.mark.parametrize("opcode", [n for n, o in OPCODES.items() if o.arity == 2 and n in TABLE])
def test_two_operands(opcode: str, target: Target) -> None:
    a, b = (m.reshape(-1).copy() for m in np.meshgrid(ENDS, ENDS))
    expression = Expression(2, (Instruction(opcode, (0, 1)),))
    if opcode in LEFT_TO_NUMPY:
        assert not supports_expression(expression)
        return
    (output,) = mapped(expression, [a, b], target)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(output, getattr(np, opcode)(a, b))


@targets
@pytest.mark.parametrize("exponent", [0.75, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0])
def test_powers(exponent: float, target: Target) -> None:
    x = np.concatenate([every_exponent(16), ENDS])
    (output,) = mapped(Expression(1, (Instruction("power_number", (0,), (exponent,)),)), [x], target)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), exponent).astype(np.float32)
    np.testing.assert_allclose(output, wanted, rtol=2.5e-7, atol=1e-38)


@targets
@pytest.mark.parametrize(("opcode", "type"), [("round_f8e4m3", float8_e4m3fn), ("round_f8e5m2", float8_e5m2)])
def test_rounding_to_bytes(opcode: str, type: type[np.generic], target: Target) -> None:
    """At every exponent, at every number of the type, and at ties between two of them."""
    numbers = np.arange(256, dtype=np.uint8).view(type).astype(np.float32)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    x = np.concatenate([every_exponent(64), numbers, ties, np.nextafter(ties, 1), np.nextafter(ties, -1)])
    x = np.resize(x, -(-len(x) // 64) * 64)  # whole vectors
    wanted = np.clip(x, numbers[0], numbers[-1]).astype(type).astype(np.float32)
    np.testing.assert_array_equal(one(opcode, x, target), wanted)


def test_instructions_left_to_numpy() -> None:
    for instruction in (
        Instruction("power_number", (0,), (0.3,)),
        Instruction("maximum_number", (0,), (math.nan,)),
        Instruction("power", (0, 0)),
    ):
        assert not supports_expression(Expression(1, (instruction,)))


def test_several_results() -> None:
    expression = Expression(2, (Instruction("add", (0, 1)), Instruction("clamp", (2,), (-1e300, 1e300))), (3, 0, 2))
    a, b = np.float32([1, 2, 3, np.inf] * 4), np.float32([5, -np.inf, 7, 8] * 4)
    output = mapped(expression, [a, b], TARGETS[0])
    for x, wanted in zip(output, (a + b, a, a + b), strict=True):
        np.testing.assert_array_equal(x, wanted)


@targets
@pytest.mark.parametrize(
    ("name", "reference", "allowed", "least"),
    [("exp_of_negative", np.exp, 1e-7, -87.0), ("exp2_of_negative", np.exp2, 3.2e-6, -126.0)],
)
def test_powers_of_zero_and_negative_numbers(
    name: str, reference: Reference, allowed: float, least: float, target: Target
) -> None:
    x = np.concatenate([-np.abs(every_exponent(64)), np.linspace(least, 0, 1 << 14, dtype=np.float32)])
    output, wanted = applied(name, x, target).astype(np.float64), reference(x.astype(np.float64))
    error = np.abs(output - wanted)
    assert (error[x >= least] / wanted[x >= least]).max() <= allowed
    assert error[x < least].max() <= 2e-38
    ends = np.float32([0, -0.0, -np.inf, -1e30, -128, 1e-6, np.nan, -1.0] * 2)
    output = applied(name, ends, target)[:8]
    np.testing.assert_allclose(output[:6], [1, 1, 0, 0, 0, 1], rtol=4e-6)
    assert np.isnan(output[6])
