"""Activations on tiles: each is a few ufunc calls with `out=` and temporaries in scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import INFINITE, clip, maximum, negative
from irload.plan.backends.numpy.kernels.views import frozen, shaped
from irload.plan.threads import ThreadCalls

Take = Callable[[], Array]
"""Returns a temporary with the tile's shape."""

EmitCalls = Callable[[Sequence[Array], Array, Sequence[np.float32], Take], ThreadCalls]
"""(arguments, out, numbers, temporaries) → calls. `out` may be one of the arguments."""


def clamp(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """x clamped to a range."""
    return [clip(args[0], numbers[0], numbers[1], out)]


_ZEROS = frozen(np.zeros(1 << 17, np.float32))


def relu(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """max(x, 0)."""
    # NumPy's maximum is twice as fast with an array as with a number.
    zero = shaped(_ZEROS[: out.size], *out.shape) if out.size <= _ZEROS.size else np.float32(0)
    return [(maximum, (args[0], zero, out))]


def sigmoid(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """1 / (1 + e^−x)."""
    one = np.float32(1)
    return [
        (negative, (args[0], out)),
        (np.exp, (out, out)),
        (np.add, (out, one, out)),
        (np.divide, (one, out, out)),
    ]


def swish(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """x · sigmoid(b·x), where b is the number, or 1."""
    t, one = take(), np.float32(1)
    return [
        (np.multiply, (args[0], -numbers[0], t)) if numbers else (negative, (args[0], t)),
        (np.exp, (t, t)),
        (np.add, (t, one, t)),
        (np.divide, (args[0], t, out)),
    ]


def mish(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """x · tanh(ln(1 + eˣ)), computed as x·n / (n + 2) with n = eˣ·(eˣ + 2), which is x in f32 for x > 20."""
    t, n, two = take(), take(), np.float32(2)
    return [
        clip(args[0], -INFINITE, np.float32(20), t),
        (np.exp, (t, t)),
        (np.add, (t, two, n)),
        (np.multiply, (n, t, n)),
        (np.add, (n, two, t)),
        (np.divide, (n, t, n)),
        (np.multiply, (args[0], n, out)),
    ]


def softplus(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """max(x, 0) + ln(1 + e^−|x|), which does not overflow."""
    t = take()
    return [
        (np.absolute, (args[0], t)),
        (negative, (t, t)),
        (np.exp, (t, t)),
        (np.log1p, (t, t)),
        *relu(args, out, numbers, take),
        (np.add, (out, t, out)),
    ]


def hard_sigmoid(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """min(max(alpha·x + beta, 0), 1)."""
    alpha, beta = numbers
    return [
        (np.multiply, (args[0], alpha, out)),
        (np.add, (out, beta, out)),
        clip(out, np.float32(0), np.float32(1), out),
    ]


def hard_swish(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """x · min(max(x/6 + 1/2, 0), 1)."""
    t = take()
    return [*hard_sigmoid(args, t, (np.float32(1 / 6), np.float32(0.5)), take), (np.multiply, (args[0], t, out))]


# erf(x) = tanh(x·P(x²)) up to 2e-7. P is a least-squares fit of artanh(erf(x))/x for |x| ≤ 3.92, weighted with the
# derivative of tanh. The last coefficient of P is positive: for larger |x|, P only grows, and tanh is 1 in f32.
# fmt: off
_ERF = (
    1.1283798217773438, 0.10276468843221664, -0.0001824660721467808, -0.0006274654297158122,
    9.040108125191182e-05, -6.10315146332141e-06, 1.6597280705354933e-07,
)
# fmt: on


def _erf_of_scaled(x: Array, scale: float, out: Array, square: Array) -> ThreadCalls:
    """erf(scale·x), with the scale folded into the polynomial. `out` must not be `x`."""
    poly = [np.float32(c * scale ** (2 * k + 1)) for k, c in enumerate(_ERF)]
    calls: ThreadCalls = [(np.square, (x, square)), (np.multiply, (square, poly[-1], out))]
    for c in poly[-2:0:-1]:
        calls += [(np.add, (out, c, out)), (np.multiply, (out, square, out))]
    return [*calls, (np.add, (out, poly[0], out)), (np.multiply, (out, x, out)), (np.tanh, (out, out))]


def erf(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """The error function."""
    t = take()
    return [*_erf_of_scaled(args[0], 1.0, t, take()), (np.copyto, (out, t))]


def gelu(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """x/2·(1 + erf(x/√2))."""
    t = take()
    return [*_erf_of_scaled(args[0], 0.5**0.5, t, take()), *_half_of_one_more(args[0], t, out)]


def gelu_tanh(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
    t = take()
    root = (2 / np.pi) ** 0.5
    return [
        (np.square, (args[0], t)),
        (np.multiply, (t, np.float32(0.044715 * root), t)),
        (np.add, (t, np.float32(root), t)),
        (np.multiply, (t, args[0], t)),
        (np.tanh, (t, t)),
        *_half_of_one_more(args[0], t, out),
    ]


def _half_of_one_more(x: Array, t: Array, out: Array) -> ThreadCalls:
    """x/2·(1 + t)."""
    return [
        (np.add, (t, np.float32(1), t)),
        (np.multiply, (t, np.float32(0.5), t)),  # before the product with x, since x · (1 + t) may overflow
        (np.multiply, (t, x, out)),
    ]


def elu(args: Sequence[Array], out: Array, numbers: Sequence[np.float32], take: Take) -> ThreadCalls:
    """max(x, 0) + alpha·(e^min(x, 0) − 1)."""
    t, zero = take(), np.float32(0)
    return [
        clip(args[0], -INFINITE, zero, t),
        (np.expm1, (t, t)),
        (np.multiply, (t, numbers[0], t)),
        clip(args[0], zero, INFINITE, out),
        (np.add, (out, t, out)),
    ]
