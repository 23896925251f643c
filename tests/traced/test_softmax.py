"""A softmax that is written out is one step in traced plans, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.model import Model
from irload.plan.ir.steps import AttentionStep, SoftmaxStep
from irload.runtime.compiled_model import CompiledModel
from tests.plan.graphs import Net
from tests.plan.test_passes_softmax import FORMS, Write, bare, other_maximum, softmax, stable
from tests.traced.test_plans import values

SHAPES = ((3, 4, 5), (2, 7, 9), (1, 1, 6), (5, 3, 2), (2, 40, 33))


def steps(compiled: CompiledModel, kind: type) -> int:
    """The number of steps of this class in the only traced plan."""
    (variant,) = compiled._traced.families.recent
    return sum(isinstance(step, kind) for step in variant.planned.program.steps)


@pytest.mark.parametrize("options", [{}, {"jit": False}], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("write", FORMS, ids=lambda w: w.__name__)
def test_one_plan_without_overflows(
    write: Write, axis: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    compiled = irload.compile_model(net.model(write(net, net.input(-1, -1, -1), axis)), 1, **options)
    for shape in SHAPES:
        x = values(*shape) * 300
        np.testing.assert_allclose(compiled(x)[0], softmax(x, axis), 1e-5, 1e-7)
    for variant in compiled._traced.families.recent:
        assert [type(step) for step in variant.planned.program.steps] == [SoftmaxStep]


def test_a_maximum_along_another_axis() -> None:
    net = Net()
    compiled = irload.compile_model(net.model(other_maximum(net, net.input(-1, -1, 5))), 1)
    for shape in ((3, 4, 5), (2, 7, 5), (4, 6, 5)):
        x = values(*shape)
        np.testing.assert_allclose(compiled(x)[0], softmax(x - x.max(1, keepdims=True), 2), 1e-5, 1e-7)
    assert not steps(compiled, SoftmaxStep)


def attention(write: Write) -> Model:
    net = Net()
    q, k, v = net.input(2, -1, 8), net.input(2, -1, 8), net.input(2, -1, 4)
    scores = net.op("MatMul", q, k, transpose_a=False, transpose_b=True)
    return net.model(net.op("MatMul", write(net, scores, 2), v, transpose_a=False, transpose_b=False))


@pytest.mark.parametrize("write", [bare, stable], ids=lambda w: w.__name__)
def test_attention(write: Write) -> None:
    compiled = irload.compile_model(attention(write), 1)
    for queries, keys in ((5, 6), (3, 9), (7, 4)):
        q, k, v = values(2, queries, 8), values(2, keys, 8, seed=1) * 40, values(2, keys, 4, seed=2)
        expected = softmax(q.astype(np.float64) @ k.swapaxes(1, 2), 2) @ v
        np.testing.assert_allclose(compiled([q, k, v])[0], expected, 1e-4, 1e-5)
    assert steps(compiled, AttentionStep) == 1
