"""Second operands: constants, inputs and computed values that broadcast to a shape in every way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.fuzz.programs.build import Build, DoesNotFit, Value


def recent_value(b: Build, suits: Callable[[Value], bool] = lambda v: True) -> Value:
    """A suitable value of the pool, preferably a recent one. Raises DoesNotFit."""
    fitting = [v for v in b.pool if suits(v)]
    if not fitting:
        raise DoesNotFit("nothing suits")
    if b.chance(0.5):
        return fitting[-1]
    return b.pick(fitting[-6:] if b.chance(0.6) else fitting)


def thinned(b: Build, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    roll = b.rng.random()
    if roll < 0.2:
        return tuple(shape)
    if roll < 0.45 and len(shape) > 1:  # per channel, per row, per sample, per position …
        k = b.number(0, len(shape) - 1)
        return tuple(n if j == k else 1 for j, n in enumerate(shape))
    if roll < 0.6 and len(shape) > 1:
        k = b.number(0, len(shape) - 1)
        return tuple(1 if j == k else n for j, n in enumerate(shape))
    start = b.number(0, len(shape)) if b.chance(0.3) else 0
    return tuple(1 if b.chance(0.4) else n for n in shape)[start:]


def operand(b: Build, shape: Sequence[int], like: Value | None = None) -> Value:
    """A value that broadcasts to the shape: mostly a computed one."""
    shape = tuple(shape)
    if b.chance(0.35):
        same = [v for v in b.pool if v.shape == shape and v.element is b.element]
        if same:
            return b.pick(same)
    if like is not None and b.chance(0.3):
        reduced_value = b.trying(lambda: reduced_like(b, like, shape))
        if reduced_value is not None:
            return reduced_value
    shape = thinned(b, shape)
    roll = b.rng.random()
    if roll < 0.3:
        return b.weights(*shape)
    parameter = b.parameter(shape)
    if roll < 0.55:
        return parameter
    if roll < 0.75:
        return b.op(b.pick(("ReLU", "Abs", "Negative")), parameter)
    if roll < 0.9 and shape:  # computed transposed, so its memory order differs from its shape
        order = [int(k) for k in b.rng.permutation(len(shape))]
        turned = b.parameter([shape[k] for k in order])
        back = [order.index(k) for k in range(len(shape))]
        return b.transpose(b.op("ReLU", turned) if b.chance(0.5) else turned, *back)
    wide = b.parameter((*shape[:-1], shape[-1] + 2) if shape else (3,))
    if not shape:
        return b.op("ReduceMax", wide, b.ints(0), keep_dims=False)
    lo = len(shape) - 1
    return b.op("Slice", wide, b.ints(1), b.ints(1 + shape[-1]), b.ints(1), b.ints(lo), version="opset8")


def reduced_like(b: Build, like: Value, shape: tuple[int, ...]) -> Value:
    """A reduction of a value to a shape that broadcasts: squeeze-and-excite, means of norms."""
    if like.shape != shape or not shape:
        raise DoesNotFit("another shape")
    axes = sorted(int(a) for a in b.rng.permutation(len(shape))[: b.number(1, len(shape))])
    kind = b.pick(("ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin", "ReduceL2"))
    kind = "ReduceMax" if b.odd and kind == "ReduceL2" else kind
    version = "opset4" if kind == "ReduceL2" else "opset1"
    return small(b, b.op(kind, like, b.ints(*axes), version=version, keep_dims=True))


def small(b: Build, x: Value) -> Value:
    """The value, clamped to a range in which sums over many elements stay moderate."""
    return b.op("Clamp", x, min=-4.0, max=4.0) if b.chance(0.7) else b.bounded(x)


def split_sizes(b: Build, total: int, parts: int) -> list[int]:
    """`total` as a sum of positive sizes."""
    cuts = sorted(int(c) for c in b.rng.choice(np.arange(1, total), parts - 1, replace=False))
    return [y - x for x, y in zip([0, *cuts], [*cuts, total], strict=True)]
