"""Decomposed activations become one step, or the epilogue of a product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.ops.special import erf
from irload.plan.ir.program import Value
from irload.plan.ir.steps import ElementwiseStep, MatMulStep
from tests.plan.programs import Chain, constant, random, run, value

ROOT = float(np.sqrt(2 / np.pi))
Write = Callable[[Chain, Value], Value]


def sigmoid(c: Chain, x: Value, slope: float = 1.0) -> Value:
    return c("number_divide", c("add", c("exp", c("multiply", x, -slope)), 1), numbers=(1.0,))


WRITTEN: dict[str, list[Write]] = {
    "gelu": [
        lambda c, x: c("multiply", c("multiply", x, 0.5), c("add", c("erf", c("divide", x, 2**0.5)), 1)),
        lambda c, x: c("multiply", x, c("multiply", c("add", 1, c("erf", c("multiply", x, 0.5**0.5))), 0.5)),
        lambda c, x: c("divide", c("multiply", c("add", c("erf", c("multiply", 0.5**0.5, x)), 1), x), 2),
        lambda c, x: c("multiply", x, c("add", 0.5, c("multiply", c("erf", c("divide", x, 2**0.5)), 0.5))),
    ],
    "gelu_tanh": [
        lambda c, x: c(
            "multiply",
            c("multiply", x, 0.5),
            c("add", 1, c("tanh", c("multiply", c("add", x, c("multiply", c("power", x, 3), 0.044715)), ROOT))),
        ),
        lambda c, x: c(
            "multiply",
            c("multiply", 0.5, c("add", c("tanh", c("multiply", inner(c, x), c("multiply", x, ROOT))), 1)),
            x,
        ),
    ],
    "swish": [
        lambda c, x: c("multiply", x, c("sigmoid", x)),
        lambda c, x: c("multiply", sigmoid(c, x), x),
        lambda c, x: c("divide", x, c("add", 1, c("exp", c("negative", x)))),
    ],
    "hard_swish": [
        lambda c, x: c("divide", c("multiply", x, c("clamp", c("add", x, 3), numbers=(0, 6))), 6),
        lambda c, x: c("multiply", c("multiply", c("minimum", c("relu", c("add", 3, x)), 6), 1 / 6), x),
        lambda c, x: c("multiply", x, c("divide", c("minimum", c("maximum", c("add", 3, x), 0), 6), 6)),
    ],
    "mish": [
        lambda c, x: c("multiply", x, c("tanh", c("log", c("add", c("exp", x), 1)))),
        lambda c, x: c("multiply", c("tanh", c("softplus", x)), x),
    ],
}
PLAIN: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}


def inner(c: Chain, x: Value) -> Value:
    return c("add", 1, c("multiply", c("multiply", x, x), 0.044715))


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, all_ in WRITTEN.items() for k in range(len(all_))])
def test_an_activation_is_one_step(name: str, k: int) -> None:
    x, chain = value(7, 300), Chain()
    out = WRITTEN[name][k](chain, x)
    (step,) = chain.optimized([x], [out])
    assert isinstance(step, ElementwiseStep)
    assert step.inputs == [x]
    x, chain = value(7, 300), Chain()
    out = WRITTEN[name][k](chain, x)
    data = random(7, 300) * 5
    data[0, :4] = 0, np.nan, np.inf, -40
    (result,) = run(chain.steps, {x: data}, [out])
    with np.errstate(all="ignore"):
        expected = PLAIN[name](data.astype(np.float64))
    np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("name", WRITTEN)
def test_an_activation_becomes_the_epilogue_of_a_matmul(name: str) -> None:
    x, weights, bias, chain = value(5, 8), constant(random(8, 16)), constant(random(16, seed=1)), Chain()
    product = chain.add(MatMulStep([x, weights], [value(5, 16)]))
    out = WRITTEN[name][0](chain, chain("add", product, bias))
    (step,) = chain.optimized([x], [out])
    assert isinstance(step, MatMulStep)
    assert step.inputs == [x, weights, bias]


def test_values_with_other_readers_are_preserved() -> None:
    x, chain = value(3, 4), Chain()
    gate = chain("sigmoid", x)
    out = chain("multiply", x, gate)
    first, second = run(chain.steps, {x: random(3, 4)}, [gate, out])
    np.testing.assert_allclose(first, 1 / (1 + np.exp(-random(3, 4))), 1e-6)
    np.testing.assert_allclose(second, random(3, 4) * first, 1e-6)
