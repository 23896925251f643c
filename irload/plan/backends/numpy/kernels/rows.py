"""Kernels over rows, the last axes of a tensor: softmax, normalisation, reductions; and softmax across columns.

Row sums are matrix–vector products, which are several times faster in BLAS than NumPy's reductions.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.kernels.epilogue import Epilogue
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import frozen
from irload.plan.backends.numpy.measured import ELEMENTS, SOFTMAX_BLOCK
from irload.plan.ir.softmax_threshold import least_exponent
from irload.plan.threads import ThreadCalls

LOWEST = np.float32(-np.inf)


def softmax(x: Array, out: Array, scratch: Scratch) -> list[ThreadCalls]:
    """Softmax over the last axis of [rows, n], in blocks of rows. `out` may be `x`."""
    rows, n = x.shape
    ones = frozen(np.ones((n, 1), np.float32))
    parts: list[ThreadCalls] = []
    for start, stop in cut(rows, scratch.share(x.size, ELEMENTS)):
        part: ThreadCalls = []
        block = max(1, scratch.tile // n)
        height = min(block, stop - start)
        sums, lost = scratch.take((height, 1)), scratch.take((height, n), np.bool_)
        for a, b in cut_range(start, stop, block):
            part += softmax_calls(x[a:b], out[a:b], sums[: b - a], lost[: b - a], ones)
        parts.append(part)
    return parts


def softmax_calls(x: Array, out: Array, sums: Array, lost: Array, ones: Array) -> ThreadCalls:
    """Return the calls for one block of rows, or of columns [count, n, columns].

    `lost`: scratch memory for the mask of flushed exponentials; `ones`: [n, 1] for rows, [1, n] for columns.
    """
    return [
        (_maximum, (x, sums)),
        (np.subtract, (x, sums, out)),
        (np.less, (out, np.float32(least_exponent(x.shape[1])), lost)),
        (np.copyto, (out, LOWEST, "same_kind", lost)),
        (np.exp, (out, out)),
        (np.matmul, (out, ones, sums) if x.ndim == 2 else (ones, out, sums)),
        (np.divide, (out, sums, out)),
    ]


def softmax_across(x: Array, out: Array, scratch: Scratch) -> list[ThreadCalls]:
    """Softmax over the middle axis of [count, n, columns], in blocks of columns. `out` may be `x`."""
    count, n, columns = x.shape
    ones = frozen(np.ones((1, n), np.float32))
    width = min(columns, max(scratch.tile // n, SOFTMAX_BLOCK))
    height = min(count, max(scratch.tile // (n * width), 1))
    blocks = [
        (slice(*rows), slice(None), slice(*across))
        for rows in cut_range(0, count, height)
        for across in cut_range(0, columns, width)
    ]
    parts: list[ThreadCalls] = []
    for start, stop in cut(len(blocks), scratch.share(x.size, ELEMENTS)):
        part: ThreadCalls = []
        sums, lost = scratch.take((height, 1, width)), scratch.take((height, n, width), np.bool_)
        for block in blocks[start:stop]:
            source = x[block]
            rows, _, across = source.shape
            part += softmax_calls(source, out[block], sums[:rows, :, :across], lost[:rows, :, :across], ones)
        parts.append(part)
    return parts


def _maximum(x: Array, out: Array) -> None:
    np.maximum.reduce(x, axis=1, out=out, keepdims=True)


def normalize(
    x: Array, out: Array, eps: float, center: bool, outside: bool, epilogue: Epilogue, scratch: Scratch
) -> list[ThreadCalls]:
    """(x − mean) / sqrt(variance + eps) over the last axis of [rows, n], then the epilogue. `out` may be `x`.

    With `outside`, the divisor is sqrt(variance) + eps.
    """
    rows, n = x.shape
    mean = frozen(np.full((n, 1), 1 / n, np.float32))
    wide = epilogue.broadcast(x.shape)
    parts: list[ThreadCalls] = []
    for start, stop in cut(rows, scratch.share(x.size, ELEMENTS)):
        part: ThreadCalls = []
        block = max(1, scratch.tile // n)
        column = scratch.take((min(block, stop - start), 1))
        for a, b in cut_range(start, stop, block):
            c, o = column[: b - a], out[a:b]
            source = x[a:b]
            if center:
                part += [(np.matmul, (source, mean, c)), (np.subtract, (source, c, o))]
                source = o
            part += [(np.vecdot, (source, source, c[:, 0])), (np.multiply, (c, np.float32(1 / n), c))]
            plus_eps, root = (np.add, (c, np.float32(eps), c)), (np.sqrt, (c, c))
            part += [root, plus_eps] if outside else [plus_eps, root]
            part.append((np.divide, (source, c, o)))
            part += wide[a:b].calls(o, scratch)
        parts.append(part)
    return parts


def reduce(kind: str, x: Array, out: Array, threads: int) -> list[ThreadCalls]:
    """Sum, mean, maximum or minimum of [rows, n, columns] over its middle axis into [rows, columns]."""
    rows, n, columns = x.shape
    parts = cut(rows, threads if x.size >= ELEMENTS else 1)
    if kind in ("sum", "mean"):
        ones = frozen(np.ones((1, n) if columns > 1 else (n, 1), np.float32))
        return [_sums(x[a:b], ones, out[a:b], n if kind == "mean" else None) for a, b in parts]
    function, start = {"max": (np.fmax, np.finfo(np.float32).min), "min": (np.fmin, np.float32(np.inf))}[kind]
    return [[(_reduced, (function, start, x[a:b], out[a:b]))] for a, b in parts]


def _sums(x: Array, ones: Array, out: Array, count: int | None) -> ThreadCalls:
    """Sum by a product with ones, then divide by the count: an exact mean of exact sums, unlike a product with 1/n."""
    calls: ThreadCalls = [(np.matmul, (ones, x, out[:, None]) if x.shape[2] > 1 else (x[:, :, 0], ones, out))]
    return calls if count is None else [*calls, (np.divide, (out, np.float32(count), out))]


def _reduced(function: np.ufunc, start: np.float32, x: Array, out: Array) -> None:
    function.reduce(x, axis=1, out=out, initial=start)
