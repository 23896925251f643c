"""Expressions on tiles: each instruction becomes a few ufunc calls with `out=` and temporaries in scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2

from irload.core.tensor import Array
from irload.ops.quantization.fake_convert import GREATEST
from irload.plan.backends.numpy.kernels import activations
from irload.plan.backends.numpy.kernels.activations import EmitCalls
from irload.plan.backends.numpy.kernels.calls import INFINITE, clip, maximum, minimum, negative
from irload.plan.ir.expression import Expression
from irload.plan.threads import Call


def _ufunc(function: Callable[..., object]) -> EmitCalls:
    return lambda args, out, numbers, take: [(function, (*args, out))]


def _with_number(function: Callable[..., object]) -> EmitCalls:
    return lambda args, out, numbers, take: [(function, (args[0], numbers[0], out))]


def _number_first(function: Callable[..., object]) -> EmitCalls:
    return lambda args, out, numbers, take: [(function, (numbers[0], args[0], out))]


def _rounded(dtype: np.dtype[Any], greatest: float | None = None) -> EmitCalls:
    def round_to(x: Array, out: Array) -> None:
        out[...] = (x if greatest is None else x.clip(-greatest, greatest)).astype(dtype)

    return lambda args, out, numbers, take: [(round_to, (args[0], out))]


TABLE: dict[str, EmitCalls] = {
    "add": _ufunc(np.add),
    "subtract": _ufunc(np.subtract),
    "multiply": _ufunc(np.multiply),
    "divide": _ufunc(np.divide),
    "maximum": _ufunc(maximum),
    "minimum": _ufunc(minimum),
    "power": _ufunc(np.power),
    "add_number": _with_number(np.add),
    "multiply_number": _with_number(np.multiply),
    "divide_number": _with_number(np.divide),
    "maximum_number": lambda args, out, numbers, take: [clip(args[0], numbers[0], INFINITE, out)],
    "minimum_number": lambda args, out, numbers, take: [clip(args[0], -INFINITE, numbers[0], out)],
    "power_number": _with_number(np.power),
    "number_subtract": _number_first(np.subtract),
    "number_divide": _number_first(np.divide),
    "square": _ufunc(np.square),
    "sqrt": _ufunc(np.sqrt),
    "negative": _ufunc(negative),
    "abs": _ufunc(np.absolute),
    "exp": _ufunc(np.exp),
    "log": _ufunc(np.log),
    "tanh": _ufunc(np.tanh),
    "sin": _ufunc(np.sin),
    "cos": _ufunc(np.cos),
    "floor": _ufunc(np.floor),
    "ceil": _ufunc(np.ceil),
    "round": _ufunc(np.rint),
    "round_f16": _rounded(np.dtype(np.float16)),
    "round_bf16": _rounded(np.dtype(bfloat16)),
    "round_f8e4m3": _rounded(np.dtype(float8_e4m3fn), GREATEST["f8e4m3"]),
    "round_f8e5m2": _rounded(np.dtype(float8_e5m2), GREATEST["f8e5m2"]),
    "relu": activations.relu,
    "clamp": activations.clamp,
    "clip": lambda args, out, numbers, take: [(args[0].clip, (args[1], args[2], out))],
    "sigmoid": activations.sigmoid,
    "swish": activations.swish,
    "hard_sigmoid": activations.hard_sigmoid,
    "hard_swish": activations.hard_swish,
    "erf": activations.erf,
    "gelu": activations.gelu,
    "gelu_tanh": activations.gelu_tanh,
    "elu": activations.elu,
    "mish": activations.mish,
    "softplus": activations.softplus,
    "convert": lambda args, out, numbers, take: [(np.copyto, (out, args[0], "unsafe"))],
}
"""The calls of each opcode. Temporaries are f32: a conversion within an expression copies f32 that are integers."""


class TilePool:
    """Temporaries of one tile shape. Released temporaries are reused, so an expression of any length needs few."""

    def __init__(self, make: Callable[[], Array]) -> None:
        self._make = make
        self.all: list[Array] = []
        self._free: list[Array] = []

    def take(self) -> Array:
        """Return a temporary."""
        if self._free:
            return self._free.pop()
        self.all.append(self._make())
        return self.all[-1]

    def give(self, array: Array) -> None:
        """Release a temporary."""
        if any(array is mine for mine in self.all):
            self._free.append(array)

    def restart(self) -> None:
        """Release all temporaries."""
        self._free = list(self.all)


def expression_calls(expression: Expression, operands: Sequence[Array], out: Array, pool: TilePool) -> list[Call]:
    """Return the calls that compute an expression on one tile into `out`, which may be one of the operands."""
    pool.restart()
    if not expression.instructions:
        return [] if operands[0] is out else [(np.copyto, (out, operands[0]))]
    registers: list[Array] = list(operands)
    last_use = {r: k for k, i in enumerate(expression.instructions) for r in i.args}
    calls: list[Call] = []
    final = len(expression.instructions) - 1
    for k, instruction in enumerate(expression.instructions):
        args = [registers[r] for r in instruction.args]
        target = out if k == final else _target(instruction.args, registers, last_use, k, expression.operands, pool)
        inner: list[Array] = []

        def take(inner: list[Array] = inner) -> Array:
            inner.append(pool.take())
            return inner[-1]

        numbers = [np.float32(n) for n in instruction.numbers]
        calls += TABLE[instruction.opcode](args, target, numbers, take)
        registers.append(target)
        for array in inner:
            pool.give(array)
        for r in set(instruction.args):
            if r >= expression.operands and last_use[r] == k and registers[r] is not target:
                pool.give(registers[r])
    return calls


def _target(
    args: Sequence[int], registers: Sequence[Array], last_use: dict[int, int], k: int, operands: int, pool: TilePool
) -> Array:
    """Return the output of instruction k: a temporary that is not used later, else a new one. Never an operand."""
    for r in args:
        if r >= operands and last_use[r] == k:
            return registers[r]
    return pool.take()
