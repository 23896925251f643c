"""Expressions on tiles: each instruction becomes a few ufunc calls with `out=`, temporaries taken from scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.expression import Expression
from irload.plan.kernels.calls import Call, Part, maximum, minimum

Take = Callable[[], Array]
"""Gives a temporary of the tile's shape."""

Emit = Callable[[Sequence[Array], Array, Sequence[np.float32], Take], Part]
"""(arguments, out, numbers, temporaries) → calls. `out` may be one of the arguments."""


def _ufunc(function: Callable[..., object]) -> Emit:
    return lambda args, out, numbers, take: [(function, (*args, out))]


def _with_number(function: Callable[..., object]) -> Emit:
    return lambda args, out, numbers, take: [(function, (args[0], numbers[0], out))]


def _number_first(function: Callable[..., object]) -> Emit:
    return lambda args, out, numbers, take: [(function, (numbers[0], args[0], out))]


def _clamp(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    return [(np.clip, (args[0], numbers[0], numbers[1], out))]


_ZEROS = np.zeros(1 << 17, np.float32)


def _relu(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    # NumPy's maximum takes half the time with an array as with a number.
    zero = _ZEROS[: out.size].reshape(out.shape) if out.size <= _ZEROS.size else np.float32(0)
    return [(maximum, (args[0], zero, out))]


def _sigmoid(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    one = np.float32(1)
    return [
        (np.negative, (args[0], out)),
        (np.exp, (out, out)),
        (np.add, (out, one, out)),
        (np.divide, (one, out, out)),
    ]


def _swish(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    t, one = take(), np.float32(1)
    return [
        (np.negative, (args[0], t)),
        (np.exp, (t, t)),
        (np.add, (t, one, t)),
        (np.divide, (args[0], t, out)),
    ]


def _hard_sigmoid(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    """min(max(alpha·x + beta, 0), 1)."""
    alpha, beta = numbers
    zero, one = np.float32(0), np.float32(1)
    return [
        (np.multiply, (args[0], alpha, out)),
        (np.add, (out, beta, out)),
        (maximum, (out, zero, out)),
        (minimum, (out, one, out)),
    ]


def _hard_swish(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    t = take()
    return [*_hard_sigmoid(args, t, (np.float32(1 / 6), np.float32(0.5)), take), (np.multiply, (args[0], t, out))]


# erf(x) = tanh(x·P(x²)) up to 2e-7. P is a least-squares fit of artanh(erf(x))/x for |x| ≤ 3.92, weighted with the
# derivative of tanh; beyond that x² is held at the edge, where tanh is 1 in f32 anyway.
# fmt: off
_ERF = (
    1.1283798217773438, 0.10276468843221664, -0.0001824660721467808, -0.0006274654297158122,
    9.040108125191182e-05, -6.10315146332141e-06, 1.6597280705354933e-07,
)
# fmt: on
_ERF_EDGE = 3.92


def _erf_of_scaled(x: Array, scale: float, out: Array, square: Array) -> Part:
    """erf(scale·x): the scale goes into the polynomial. `out` must not be `x`."""
    poly = [np.float32(c * scale ** (2 * k + 1)) for k, c in enumerate(_ERF)]
    calls: Part = [
        (np.multiply, (x, x, square)),
        (minimum, (square, np.float32((_ERF_EDGE / scale) ** 2), square)),
        (np.multiply, (square, poly[-1], out)),
    ]
    for c in poly[-2:0:-1]:
        calls += [(np.add, (out, c, out)), (np.multiply, (out, square, out))]
    return [*calls, (np.add, (out, poly[0], out)), (np.multiply, (out, x, out)), (np.tanh, (out, out))]


def _erf(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    t = take()
    return [*_erf_of_scaled(args[0], 1.0, t, take()), (np.copyto, (out, t))]


def _gelu(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    """x/2·(1 + erf(x/√2))."""
    t, half = take(), take()
    return [
        *_erf_of_scaled(args[0], 0.5**0.5, t, half),
        (np.multiply, (args[0], np.float32(0.5), half)),
        (np.multiply, (t, half, t)),
        (np.add, (t, half, out)),
    ]


def _gelu_tanh(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    """x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
    t, half = take(), take()
    root = np.float32((2 / np.pi) ** 0.5)
    return [
        (np.multiply, (args[0], args[0], t)),
        (np.multiply, (t, np.float32(0.044715), t)),
        (np.add, (t, np.float32(1), t)),
        (np.multiply, (t, args[0], t)),
        (np.multiply, (t, root, t)),
        (np.tanh, (t, t)),
        (np.multiply, (args[0], np.float32(0.5), half)),
        (np.multiply, (t, half, t)),
        (np.add, (t, half, out)),
    ]


def _elu(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> Part:
    """max(x, 0) + alpha·(e^min(x, 0) − 1)."""
    t, zero = take(), np.float32(0)
    return [
        (minimum, (args[0], zero, t)),
        (np.expm1, (t, t)),
        (np.multiply, (t, numbers[0], t)),
        (maximum, (args[0], zero, out)),
        (np.add, (out, t, out)),
    ]


TABLE: dict[str, Emit] = {
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
    "power_number": _with_number(np.power),
    "number_subtract": _number_first(np.subtract),
    "number_divide": _number_first(np.divide),
    "square": _ufunc(np.square),
    "sqrt": _ufunc(np.sqrt),
    "negative": _ufunc(np.negative),
    "abs": _ufunc(np.absolute),
    "exp": _ufunc(np.exp),
    "log": _ufunc(np.log),
    "tanh": _ufunc(np.tanh),
    "sin": _ufunc(np.sin),
    "cos": _ufunc(np.cos),
    "floor": _ufunc(np.floor),
    "ceil": _ufunc(np.ceil),
    "round": _ufunc(np.rint),
    "relu": _relu,
    "clamp": _clamp,
    "sigmoid": _sigmoid,
    "swish": _swish,
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": _hard_swish,
    "erf": _erf,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "elu": _elu,
}


class TilePool:
    """Temporaries of one tile shape. Given back ones are used again, so a chain of any length needs only a few."""

    def __init__(self, make: Callable[[], Array]) -> None:
        self._make = make
        self.all: list[Array] = []
        self._free: list[Array] = []

    def take(self) -> Array:
        """A temporary."""
        if self._free:
            return self._free.pop()
        self.all.append(self._make())
        return self.all[-1]

    def give(self, array: Array) -> None:
        """Give a temporary back."""
        if any(array is mine for mine in self.all):
            self._free.append(array)

    def restart(self) -> None:
        """Everything is free again."""
        self._free = list(self.all)


def expression_calls(expression: Expression, operands: Sequence[Array], out: Array, pool: TilePool) -> list[Call]:
    """The calls that compute an expression on one tile into `out`, which may be one of the operands."""
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
        calls += TABLE[instruction.function](args, target, numbers, take)
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
    """Where instruction k writes: over a temporary that ends here, else into a fresh one. Never over an operand."""
    for r in args:
        if r >= operands and last_use[r] == k:
            return registers[r]
    return pool.take()
