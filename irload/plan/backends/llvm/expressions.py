"""Emits expressions on vectors of f32 and integers: each opcode becomes a few machine instructions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.ops.quantization.fake_convert import GREATEST
from irload.plan.backends.llvm import vector_math as functions
from irload.plan.backends.llvm.bfloat16 import rounded_bits
from irload.plan.backends.llvm.builder import Bool, Vec
from irload.plan.backends.llvm.elements import I32, I64, SIZES
from irload.plan.backends.llvm.trigonometry import cos, sin
from irload.plan.backends.llvm.values import AnyVec
from irload.plan.ir.expression import Expression, Instruction

Emit = Callable[..., Vec]
"""(arguments, then numbers) → the result."""


def _clip(x: Vec, low: AnyVec, high: AnyVec) -> Vec:
    return x.at_least(low).at_most(high)


def _hard_sigmoid(x: Vec, alpha: float, beta: float) -> Vec:
    return _clip(x.times_plus(alpha, beta), 0.0, 1.0)


def _reciprocal_root(x: Vec) -> Vec:
    """x^−½: ∞ for both zeros, 0 for −∞."""
    return (1.0 / (x + 0.0).unary("sqrt")).where(x.compare("une", -math.inf), 0.0)


def _three_quarters(x: Vec) -> Vec:
    """x^¾, the usual power of LRN: 0 for both zeros, ∞ for −∞."""
    root = (x + 0.0).unary("sqrt")
    return (root * root.unary("sqrt")).where(x.compare("une", -math.inf), math.inf)


def _truth(mask: Bool, like: Vec) -> Vec:
    """1 where a mask is set, 0 elsewhere."""
    return like.constant(1.0).where(mask, 0.0)


def _divisor(y: Vec) -> Vec:
    """A divisor y > 0. Lanes without an element, where y may be 0, must not divide by it."""
    return y.where(y.compare("sgt", 0), 1)


def _floor_quotient(x: Vec, y: Vec) -> Vec:
    """⌊x / y⌋ of integers, for y > 0."""
    y = _divisor(y)
    quotient = x / y
    below = (x - quotient * y).compare("slt", 0)
    return (quotient - 1).where(below, quotient)


def _remainder(x: Vec, y: Vec) -> Vec:
    """x − trunc(x / y) · y of integers, for y > 0."""
    y = _divisor(y)
    return x - x / y * y


def _shifted_left(x: Vec, count: Vec) -> Vec:
    """x · 2^count; 0 for counts outside 0..width − 1."""
    inside = count.compare("ult", 8 * SIZES[x.element])
    return (x << count.where(inside, 0)).where(inside, 0)


def _shifted_right(x: Vec, count: Vec) -> Vec:
    """⌊x / 2^count⌋; for counts outside 0..width − 1, all bits are the sign."""
    width = 8 * SIZES[x.element]
    return x >> count.where(count.compare("ult", width), width - 1)


def _converted(x: Vec, dtype: Any) -> Vec:
    """A register as the register of another type. Bytes are f32 until they are stored: the low bits of integers."""
    to = _WHOLE.get(dtype, "f32")
    if x.element == to:
        return x
    if dtype in _BYTES:
        low = x.cast("trunc", "i8")
        return low.cast("zext" if dtype == _U8 else "sext", I32).converted()
    if not x.is_float:
        return x.converted() if to == "f32" else x.cast("sext" if to == I64 else "trunc", to)
    limit = 2.0 ** (8 * SIZES[to] - 1)
    inside = x.compare("oge", -limit) & x.compare("olt", limit)
    whole = x.where(inside, 0.0).cast("fptosi", to)
    return whole.where(inside, -int(limit))


def _rounded_to_byte(x: Vec, greatest: float, mantissa: int, lowest: int) -> Vec:
    """The nearest finite number of an 8-bit float type, ties to even.

    `mantissa`: its bits of mantissa; `lowest`: its least exponent. The sum with 1.5 · 2^(23 − mantissa) times the power
    of 2 in x has as many bits of mantissa as the type.
    """
    x = _clip(x, -greatest, greatest)
    power = (x.bits() & 0x7F800000).floats().at_least(2.0**lowest)
    shift = power * (1.5 * 2.0 ** (23 - mantissa))
    return (x + shift) - shift


_POWERS: dict[float, Callable[[Vec], Vec]] = {
    0.75: _three_quarters,
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -0.5: _reciprocal_root,
    -1.0: lambda x: 1.0 / x,
    -2.0: lambda x: 1.0 / x / x,
}
"""Exponents of powers that are computed by multiplications, divisions and square roots."""

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
    "power_number": lambda x, exponent: _POWERS[exponent](x),
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
    "round_f16": lambda x: x.cast("fptrunc", "f16").cast("fpext", "f32"),
    "round_bf16": lambda x: (rounded_bits(x) << 16).floats(),
    "round_f8e4m3": lambda x: _rounded_to_byte(x, GREATEST["f8e4m3"], mantissa=3, lowest=-6),
    "round_f8e5m2": lambda x: _rounded_to_byte(x, GREATEST["f8e5m2"], mantissa=2, lowest=-14),
    "relu": lambda x: x.at_least(0.0),
    "clamp": _clip,
    "clip": _clip,
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
    "equal": lambda x, y: _truth(x.compare("oeq", y), x),
    "less": lambda x, y: _truth(x.compare("olt", y), x),
    "less_equal": lambda x, y: _truth(x.compare("ole", y), x),
    "nonzero": lambda x: _truth(x.compare("une", 0.0), x),
    "not": lambda x: 1.0 - x,
    "select": lambda which, x, y: x.where(which.compare("une", 0.0), y),
}
"""The code of each opcode. Of powers, only the exponents in `_POWERS` are supported.

Registers are f32: reads convert from u8, writes convert to u8. Booleans are 0 and 1.
"""

_INTEGERS: dict[str, Emit] = {
    **{name: _TABLE[name] for name in ("add", "subtract", "multiply")},
    "divide": _floor_quotient,
    "remainder": _remainder,
    "bit_and": lambda x, y: x & y,
    "bit_or": lambda x, y: x | y,
    "bit_xor": lambda x, y: x ^ y,
    "shift_left": _shifted_left,
    "shift_right": _shifted_right,
    "maximum": lambda x, y: x.where(x.compare("sgt", y), y),
    "minimum": lambda x, y: x.where(x.compare("slt", y), y),
    "negative": lambda x: x.constant(0) - x,
    "equal": lambda x, y: _truth(x.compare("eq", y), x.function.number(1.0)),
    "less": lambda x, y: _truth(x.compare("slt", y), x.function.number(1.0)),
    "less_equal": lambda x, y: _truth(x.compare("sle", y), x.function.number(1.0)),
    "nonzero": lambda x: _truth(x.compare("ne", 0), x.function.number(1.0)),
    "select": _TABLE["select"],
}
"""The code of opcodes whose last argument is an i32 or i64."""

_QUANTIZED: dict[str, Emit] = {
    "maximum": functions.larger,
    "minimum": functions.smaller,
}
"""Shorter code for expressions with results in u8, which need not handle NaN."""

_F32, _U8 = np.dtype(np.float32), np.dtype(np.uint8)
_BYTES = (_U8, np.dtype(np.int8))
_WHOLE = {np.dtype(np.int32): I32, np.dtype(np.int64): I64}
"""The integers whose registers are not f32."""
_REGISTERS = (_F32, *_BYTES, *_WHOLE)
"""The supported types of conversions."""

_ARITHMETIC = frozenset({"add_number", "multiply_number", "divide_number", "number_subtract", "number_divide"})
"""Opcodes with one number that may be a run-time argument."""

_CYCLES: dict[str, float] = {
    "convert": 0, "divide": 5, "divide_number": 5, "number_divide": 5, "sqrt": 6, "power_number": 8, "exp": 10,
    "log": 14, "tanh": 15, "sin": 60, "cos": 60, "sigmoid": 15, "swish": 15, "erf": 28, "gelu": 25, "gelu_tanh": 17,
    "elu": 10, "mish": 17, "softplus": 20, "round_f16": 2, "round_bf16": 6,
    "round_f8e4m3": 7, "round_f8e5m2": 7, "remainder": 5,
}  # fmt: skip
"""Cycles per vector of 8 lanes; 1 by default."""


def supports_expression(expression: Expression) -> bool:
    """True if every instruction can be computed on vectors of f32."""
    return all(_supports(i, _TABLE) for i in expression.instructions)


def supports_integers(expression: Expression, operands: Sequence[np.dtype[Any]]) -> bool:
    """True if every instruction can be computed on vectors, for operands of these types."""
    types = expression.types(operands)
    return all(_supports(i, _INTEGERS if types[i.args[-1]] in _WHOLE else _TABLE) for i in expression.instructions)


def _supports(instruction: Instruction, functions: Mapping[str, Emit]) -> bool:
    opcode, numbers = instruction.opcode, instruction.numbers
    if opcode == "power_number" and numbers[0] not in _POWERS:
        return False
    if opcode == "convert":
        return instruction.dtype in _REGISTERS
    return opcode in functions and not any(math.isnan(n) for n in numbers)


def numbers_of(expression: Expression) -> list[float]:
    """The numbers of instructions in `_ARITHMETIC`, in order."""
    with np.errstate(over="ignore"):
        return [float(np.float32(n)) for i in expression.instructions if i.opcode in _ARITHMETIC for n in i.numbers]


def without_numbers(expression: Expression) -> Expression:
    """The expression with 0 instead of the numbers that `numbers_of` lists: these are run-time arguments."""
    instructions = (replace(i, numbers=(0.0,)) if i.opcode in _ARITHMETIC else i for i in expression.instructions)
    return replace(expression, instructions=tuple(instructions))


def evaluate(expression: Expression, operands: Sequence[Vec], given: Sequence[Vec] | None = None) -> list[Vec]:
    """The results of an expression on vectors, one for each of its result registers.

    `given`: vectors that replace the numbers that `numbers_of` lists.

    Raises KeyError for instructions that `supports_expression` does not allow.
    """
    registers = list(operands)
    vectors = None if given is None else iter(given)
    functions, products = _TABLE, dict[int, tuple[Vec, Any]]()
    if _is_quantized(expression):
        functions = {**_TABLE, **_QUANTIZED}
    for i in expression.instructions:
        with np.errstate(over="ignore"):
            numbers: list[Any] = [float(np.float32(n)) for n in i.numbers]
        if vectors is not None and i.opcode in _ARITHMETIC:
            numbers = [next(vectors)]
        args = [*(registers[r] for r in i.args), *numbers]
        if functions is not _TABLE and i.opcode in ("add", "add_number") and args[0].is_float:
            at = next((k for k, r in enumerate(i.args) if r in products), None)
            if at is not None:
                x, factor = products[i.args[at]]
                registers.append(x.times_plus(factor, args[1 - at]))
                continue
        if i.opcode in ("multiply", "multiply_number"):
            products[len(registers)] = args[0], args[1]
        if i.opcode == "convert":
            registers.append(_converted(args[0], i.dtype))
            continue
        by_type = functions if registers[i.args[-1]].is_float else _INTEGERS
        registers.append(by_type[i.opcode](*args))
    return [registers[_unrounded(expression, r)] for r in expression.result_registers]


def _is_quantized(expression: Expression) -> bool:
    """True if all results are f32 rounded to u8, or integers as f32. Products and sums may then be fused to FMAs."""
    first = expression.operands
    results = [expression.instructions[r - first] for r in expression.result_registers if r >= first]
    truncated = any(i.opcode == "convert" and i.dtype in _WHOLE for i in expression.instructions)
    return bool(results) and not truncated and all(i.opcode == "convert" and i.dtype == _U8 for i in results)


def _unrounded(expression: Expression, register: int) -> int:
    """The register of a result in bytes before it is rounded or wrapped, since the store does so."""
    for opcode in ("convert", "round"):
        at = register - expression.operands
        instruction = expression.instructions[at] if at >= 0 else None
        if instruction is None or instruction.opcode != opcode or instruction.dtype not in (None, *_BYTES):
            break
        register = instruction.args[0]
    return register


def expression_cycles(expression: Expression) -> float:
    """An estimate of the cycles for a vector of 8 lanes."""
    return sum(_CYCLES.get(i.opcode, 1) for i in expression.instructions)
