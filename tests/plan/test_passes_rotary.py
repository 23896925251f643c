"""Decomposed rotary embeddings become one step; heads that share keys are not copied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.ir.program import Program, Value
from irload.plan.ir.steps import (
    AttentionStep,
    BroadcastStep,
    ConcatStep,
    ReshapeStep,
    RotaryEmbeddingStep,
    SliceStep,
    TransposeStep,
)
from irload.plan.passes.pipeline import optimize
from tests.plan.programs import Chain, constant, random, run, value

COS, SIN = random(1, 5, 8, seed=1), random(1, 5, 8, seed=2)


def halves(c: Chain, x: Value, middle: int = 4, axis: int = -1) -> list[Value]:
    """The halves of x along an axis."""
    axis %= len(x.shape)
    results: list[Value] = []
    for part in (slice(0, middle), slice(middle, x.shape[axis])):
        shape = (*x.shape[:axis], part.stop - part.start, *x.shape[axis + 1 :])
        results.append(
            c.add(
                SliceStep(
                    [x],
                    [value(*shape)],
                    index=(*(slice(None),) * axis, part, *(slice(None),) * (len(shape) - axis - 1)),
                )
            )
        )
    return results


def turned(c: Chain, x: Value, middle: int = 4, *, negate: str = "negative") -> Value:
    first, second = halves(c, x, middle)
    numbers = (-1.0,) if negate == "multiply_number" else ()
    return c.add(ConcatStep([c(negate, second, numbers=numbers), first], [value(*x.shape)], axis=len(x.shape) - 1))


def plain(x: Array) -> Array:
    return x * COS + np.concatenate([-x[..., 4:], x[..., :4]], -1) * SIN


@pytest.mark.one_in(2)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", ["plain first", "turned first", "by minus one"])
@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 5, 8), (64, 1200, 5, 8)])
def test_it_is_one_step(shape: tuple[int, ...], order: str, threads: int) -> None:
    x, c = value(*shape), Chain()
    cosine, sine = constant(COS), constant(SIN)
    if order == "plain first":
        out = c("add", c("multiply", x, cosine), c("multiply", turned(c, x), sine))
    elif order == "turned first":
        out = c("add", c("multiply", sine, turned(c, x)), c("multiply", cosine, x))
    else:
        out = c("add", c("multiply", x, cosine), c("multiply", turned(c, x, negate="multiply_number"), sine))
    if shape == (5, 8):
        out.shape = (1, 5, 8)
    steps = c.optimized([x], [out])
    if shape == (5, 8):
        assert not any(isinstance(s, RotaryEmbeddingStep) for s in steps)  # the result has another rank
        return
    assert [type(s) for s in steps] == [RotaryEmbeddingStep]
    data = random(*shape)
    (result,) = run(steps, {x: data}, [out], threads, passes=False)
    np.testing.assert_allclose(result, plain(data), 1e-6, 1e-6)


def test_of_a_transposed_view() -> None:
    x, c = value(2, 5, 3, 8), Chain()
    seen = c.add(TransposeStep([x], [value(2, 3, 5, 8)], order=(0, 2, 1, 3)))
    out = c("add", c("multiply", seen, constant(COS)), c("multiply", turned(c, seen), constant(SIN)))
    (result,) = run(c.steps, {x: random(2, 5, 3, 8)}, [out])
    np.testing.assert_allclose(result, plain(random(2, 5, 3, 8).swapaxes(1, 2)), 1e-6, 1e-6)


def unequal(c: Chain, x: Value) -> Value:
    return c("add", c("multiply", x, constant(COS)), c("multiply", turned(c, x, 3), constant(SIN)))


def not_negated(c: Chain, x: Value) -> Value:
    return c("add", c("multiply", x, constant(COS)), c("multiply", turned(c, x, negate="abs"), constant(SIN)))


def of_another(c: Chain, x: Value) -> Value:
    return c("add", c("multiply", c("exp", x), constant(COS)), c("multiply", turned(c, x), constant(SIN)))


def subtracted(c: Chain, x: Value) -> Value:
    return c("subtract", c("multiply", x, constant(COS)), c("multiply", turned(c, x), constant(SIN)))


def in_order(c: Chain, x: Value) -> Value:
    first, second = halves(c, x)
    join = c.add(ConcatStep([c("negative", first), second], [value(*x.shape)], axis=len(x.shape) - 1))
    return c("add", c("multiply", x, constant(COS)), c("multiply", join, constant(SIN)))


@pytest.mark.parametrize("write", [unequal, not_negated, of_another, subtracted, in_order])
def test_near_misses_are_preserved(write: Callable[[Chain, Value], Value]) -> None:
    results: list[Array] = []
    for passes in (True, False):
        x, c = value(2, 5, 8), Chain()
        out = write(c, x)
        results += run(c.steps, {x: random(2, 5, 8)}, [out], passes=passes)
    np.testing.assert_allclose(results[0], results[1], 1e-6, 1e-6)
    x, c = value(2, 5, 8), Chain()
    assert not any(isinstance(s, RotaryEmbeddingStep) for s in c.optimized([x], [write(c, x)]))


def repeated(c: Chain, x: Value, group: int) -> Value:
    n, heads, rows, width = x.shape
    wide = c.add(
        BroadcastStep(
            [c.add(ReshapeStep([x], [value(n, heads, 1, rows, width)]))], [value(n, heads, group, rows, width)]
        )
    )
    return c.add(ReshapeStep([wide], [value(n, heads * group, rows, width)]))


@pytest.mark.parametrize("mask", [None, (4, 7), (2, 1, 1, 7), (6, 4, 7), (2, 6, 4, 7)])
def test_keys_and_values_are_not_repeated(mask: tuple[int, ...] | None) -> None:
    q, k, v = random(2, 6, 4, 8), random(2, 3, 7, 8, seed=1), random(2, 3, 7, 5, seed=2)
    arrays, c = {value(*a.shape): a for a in (q, k, v)}, Chain()
    mask_operands = [] if mask is None else [constant(random(*mask, seed=3))]
    a, b, d = arrays
    out = c.add(
        AttentionStep([a, repeated(c, b, 2), repeated(c, d, 2), *mask_operands], [value(2, 6, 4, 5)], scale=0.4)
    )
    steps = optimize(Program(c.steps, list(arrays), [out])).steps
    assert not any(isinstance(s, BroadcastStep) for s in steps)
    (result,) = run(steps, arrays, [out], passes=False)
    scores = q.astype(np.float64) @ k.repeat(2, 1).swapaxes(-1, -2) * 0.4
    scores = scores if mask is None else scores + random(*mask, seed=3)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(result, grown / grown.sum(-1, keepdims=True) @ v.repeat(2, 1), 1e-5, 1e-6)


def test_keys_repeated_without_values_stay_repeated() -> None:
    q, k, v, c = value(2, 6, 4, 8), value(2, 3, 7, 8), value(2, 6, 7, 5), Chain()
    out = c.add(AttentionStep([q, repeated(c, k, 2), v], [value(2, 6, 4, 5)], scale=0.4))
    assert any(isinstance(s, BroadcastStep) for s in c.optimized([q, k, v], [out]))
