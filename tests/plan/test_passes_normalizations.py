"""Decomposed layer norm and RMSNorm become one step; near misses do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.ir.program import Value
from irload.plan.ir.steps import MatMulStep, NormalizeStep, ReduceStep, ReshapeStep
from tests.plan.programs import Chain, constant, random, run, value

GAMMA, BETA = random(8, seed=1), random(8, seed=2)
Write = Callable[[Chain, Value], Value]


def mean(c: Chain, x: Value, axes: int = 1, *, keep: bool = True) -> Value:
    rank = len(x.shape)
    shape = (*x.shape[:-axes], *(1,) * axes)
    result = c.add(
        ReduceStep(
            [x], [value(*(shape if keep else x.shape[:-axes]))], kind="mean", axes=tuple(range(rank - axes, rank))
        )
    )
    return result if keep else c.add(ReshapeStep([result], [value(*shape)]))


def affine(c: Chain, n: Value) -> Value:
    return c("add", c("multiply", n, constant(GAMMA)), constant(BETA))


def exported(c: Chain, x: Value) -> Value:
    d = c("subtract", x, mean(c, x))
    return affine(c, c("divide", d, c("sqrt", c("add", mean(c, c("power", d, 2)), 1e-5))))


def twice(c: Chain, x: Value) -> Value:
    first, second = c("subtract", x, mean(c, x)), c("subtract", x, mean(c, x))
    return affine(c, c("multiply", first, c("power", c("add", mean(c, c("multiply", second, second)), 1e-5), -0.5)))


def keras(c: Chain, x: Value) -> Value:
    m = mean(c, x)
    d = c("subtract", x, m)
    root = c("divide", 1, c("sqrt", c("add", 1e-5, mean(c, c("square", d)))))
    inverse = c("multiply", root, constant(GAMMA))
    return c("add", c("multiply", x, inverse), c("subtract", constant(BETA), c("multiply", m, inverse)))


def flat(c: Chain, x: Value) -> Value:
    d = c("subtract", x, mean(c, x, keep=False))
    return affine(c, c("divide", d, c("sqrt", c("add", mean(c, c("square", d), keep=False), 1e-5))))


def rms(c: Chain, x: Value) -> Value:
    root = c("divide", 1, c("sqrt", c("add", mean(c, c("power", x, 2)), 1e-5)))
    return affine(c, c("multiply", x, root))


def rms_by_power(c: Chain, x: Value) -> Value:
    return affine(c, c("multiply", c("power", c("add", mean(c, c("multiply", x, x)), 1e-5), -0.5), x))


def layer_norm(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * GAMMA + BETA


def rms_norm(x: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * GAMMA + BETA


@pytest.mark.parametrize(
    ("write", "plain"),
    [*((w, layer_norm) for w in (exported, twice, keras, flat)), *((w, rms_norm) for w in (rms, rms_by_power))],
)
@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (1, 8)])
def test_a_normalisation_is_one_step(write: Write, plain: Callable[[Array], Array], shape: tuple[int, ...]) -> None:
    x, chain = value(*shape), Chain()
    out = write(chain, x)
    (step,) = chain.optimized([x], [out])
    assert isinstance(step, NormalizeStep)
    assert (step.center, step.eps, str(step.epilogue)) == (plain is layer_norm, float(np.float32(1e-5)), "multiply+add")
    x, chain = value(*shape), Chain()
    out = write(chain, x)
    data = random(*shape) * 3 + 1
    (result,) = run(chain.steps, {x: data}, [out])
    np.testing.assert_allclose(result, plain(data.astype(np.float64)), 1e-5, 1e-5)


def test_over_two_axes() -> None:
    x, chain = value(3, 4, 5), Chain()
    d = chain("subtract", x, mean(chain, x, 2))
    out = chain("divide", d, chain("sqrt", chain("add", mean(chain, chain("square", d), 2), 1e-3)))
    (step,) = chain.optimized([x], [out])
    assert isinstance(step, NormalizeStep)
    assert step.axes == (1, 2)


def test_a_sum_with_another_reader_is_preserved() -> None:
    x, y, chain = value(4, 8), value(4, 8), Chain()
    total = chain.add(MatMulStep([x, constant(random(8, 8))], [value(4, 8)]))
    total = chain("add", total, y)
    out = rms(chain, total)
    last = chain("add", out, total)
    a, b = random(4, 8, seed=3), random(4, 8, seed=4)
    results = run(chain.steps, {x: a, y: b}, [total, last])
    expected = a @ random(8, 8) + b
    np.testing.assert_allclose(results[0], expected, 1e-5, 1e-5)
    np.testing.assert_allclose(results[1], rms_norm(expected) + expected, 1e-5, 1e-5)


def test_means_with_other_readers_are_preserved() -> None:
    x, chain = value(4, 8), Chain()
    m = mean(chain, x)
    d = chain("subtract", x, m)
    variance = mean(chain, chain("square", d))
    out = chain("divide", d, chain("sqrt", chain("add", variance, 1e-5)))
    data = random(4, 8)
    ours = run(chain.steps, {x: data}, [m, variance, out])
    expected = (data.mean(-1, keepdims=True), data.var(-1, keepdims=True))
    for a, b in zip(ours, (*expected, (data - expected[0]) / np.sqrt(expected[1] + 1e-5)), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-5)


def other_mean(c: Chain, x: Value) -> Value:
    d = c("subtract", x, mean(c, c("multiply", x, 1.5)))
    return c("divide", d, c("sqrt", c("add", mean(c, c("square", d)), 1e-5)))


def not_squared(c: Chain, x: Value) -> Value:
    d = c("subtract", x, mean(c, x))
    return c("divide", d, c("sqrt", c("add", mean(c, c("abs", d)), 1e-5)))


def no_root(c: Chain, x: Value) -> Value:
    d = c("subtract", x, mean(c, x))
    return c("divide", d, c("add", mean(c, c("square", d)), 1e-5))


def less_eps(c: Chain, x: Value) -> Value:
    return c("divide", x, c("sqrt", c("add", mean(c, c("square", x)), -1e-5)))


def halved(c: Chain, x: Value) -> Value:
    return c("divide", x, c("sqrt", c("add", c("multiply", mean(c, c("square", x)), 0.5), 1e-5)))


@pytest.mark.parametrize("write", [not_squared, no_root, less_eps, halved])
def test_near_misses_are_preserved(write: Write) -> None:
    x, chain = value(4, 8), Chain()
    out = write(chain, x)
    assert not any(isinstance(s, NormalizeStep) for s in chain.optimized([x], [out]))


@pytest.mark.parametrize("gamma", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("computed", [True, False])
def test_a_nonfinite_scale_gives_the_same_fused(gamma: float, computed: bool) -> None:
    scales = GAMMA.copy()
    scales[3] = gamma
    data, results = random(4, 8), list[Array]()
    for passes in (True, False):
        x, scale, chain = value(4, 8), value(8), Chain()
        m = mean(chain, x)
        d = chain("subtract", x, m)
        root = chain("divide", 1, chain("sqrt", chain("add", 1e-5, mean(chain, chain("square", d)))))
        inverse = chain("multiply", root, scale if computed else constant(scales))
        out = chain(
            "add", chain("multiply", x, inverse), chain("subtract", constant(BETA), chain("multiply", m, inverse))
        )
        results += run(chain.steps, {x: data, scale: scales}, [out], passes=passes)
    np.testing.assert_allclose(results[0], results[1], 1e-5, 1e-5)


@pytest.mark.parametrize("write", [other_mean, not_squared, no_root, less_eps, halved])
def test_decomposed_norms_give_the_same_fused(write: Write) -> None:
    data = random(4, 8)
    results: list[Array] = []
    for passes in (True, False):
        x, chain = value(4, 8), Chain()
        out = write(chain, x)
        results += run(chain.steps, {x: data}, [out], passes=passes)
    np.testing.assert_allclose(results[0], results[1], 1e-5, 1e-6)
