"""Expressions on vectors: each instruction becomes a few of the processor's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from irload.plan.backends.llvm import vector_math as functions
from irload.plan.backends.llvm.builder import Function, Value
from irload.plan.backends.llvm.trigonometry import cos, sin
from irload.plan.backends.llvm.vectors import Vector
from irload.plan.ir.expression import Expression, Instruction

Emit = Callable[..., Vector]
"""(arguments, then numbers) → the result."""


def _clamp(x: Vector, low: float, high: float) -> Vector:
    return x.at_least(low).at_most(high)


def _hard_sigmoid(x: Vector, alpha: float, beta: float) -> Vector:
    return _clamp(x.times_plus(alpha, beta), 0.0, 1.0)


def _power(x: Vector, exponent: float) -> Vector:
    return _POWERS[exponent](x)


def _reciprocal_root(x: Vector) -> Vector:
    """x^−½, which of both zeros is ∞, and of −∞ is 0."""
    return (1.0 / (x + 0.0).unary("sqrt")).where(x.compare("une", -math.inf), 0.0)


_POWERS: dict[float, Callable[[Vector], Vector]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -0.5: _reciprocal_root,
    -1.0: lambda x: 1.0 / x,
    -2.0: lambda x: 1.0 / x / x,
}
"""The exponents that a few instructions raise to."""

_TABLE: dict[str, Emit] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": lambda x, y: x.maximum(y),
    "minimum": lambda x, y: x.minimum(y),
    "add_number": lambda x, n: x + n,
    "multiply_number": lambda x, n: x * n,
    "divide_number": lambda x, n: x / n,
    "maximum_number": lambda x, n: x.at_least(n),
    "minimum_number": lambda x, n: x.at_most(n),
    "power_number": _power,
    "number_subtract": lambda x, n: n - x,
    "number_divide": lambda x, n: n / x,
    "square": lambda x: x * x,
    "sqrt": lambda x: x.unary("sqrt"),
    "negative": lambda x: -x,
    "abs": lambda x: abs(x),
    "exp": functions.exp,
    "log": functions.log,
    "tanh": functions.tanh,
    "sin": sin,
    "cos": cos,
    "floor": lambda x: x.unary("floor"),
    "ceil": lambda x: x.unary("ceil"),
    "round": lambda x: x.unary("rint"),
    "relu": lambda x: x.at_least(0.0),
    "clamp": _clamp,
    "sigmoid": functions.sigmoid,
    "swish": functions.swish,
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": lambda x: x * _hard_sigmoid(x, 1 / 6, 0.5),
    "erf": functions.erf,
    "gelu": functions.gelu,
    "gelu_tanh": functions.gelu_tanh,
    "elu": functions.elu,
    "mish": functions.mish,
    "softplus": functions.softplus,
}
"""All opcodes but powers of any exponent, and those that give other types than f32."""

_CYCLES: dict[str, float] = {
    "divide": 5, "divide_number": 5, "number_divide": 5, "sqrt": 6, "power_number": 8, "exp": 10, "log": 14,
    "tanh": 15, "sin": 60, "cos": 60, "sigmoid": 15, "swish": 15, "erf": 28, "gelu": 25, "gelu_tanh": 17,
    "elu": 10, "mish": 17, "softplus": 20,
}  # fmt: skip
"""Of one vector of 8 lanes, where it is not 1."""


def supports_expression(expression: Expression) -> bool:
    """True where every instruction can be computed on vectors."""
    return all(_supports(i) for i in expression.instructions)


def _supports(instruction: Instruction) -> bool:
    opcode, numbers = instruction.opcode, instruction.numbers
    if opcode == "power_number" and numbers[0] not in _POWERS:
        return False
    return opcode in _TABLE and not any(math.isnan(n) for n in numbers)


def evaluate(function: Function, expression: Expression, operands: Sequence[Value]) -> list[Value]:
    """The results of an expression of vectors, one for each of its result registers.

    Raises KeyError for instructions that `supports_expression` does not allow.
    """
    registers = [Vector(function, operand) for operand in operands]
    for i in expression.instructions:
        with np.errstate(over="ignore"):
            numbers = [float(np.float32(n)) for n in i.numbers]
        registers.append(_TABLE[i.opcode](*(registers[r] for r in i.args), *numbers))
    return [registers[r].value for r in expression.result_registers]


def expression_cycles(expression: Expression) -> float:
    """An estimate of the cycles that an expression takes for a vector of 8 lanes."""
    return sum(_CYCLES.get(i.opcode, 1) for i in expression.instructions)
