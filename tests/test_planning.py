"""Plans are created as soon as the shapes are known, once for each set of shapes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import irload
from irload.plan import executor
from irload.plan.executor import Executor
from tests.cli.conftest import MODELS, irrun_process

STATIC, DYNAMIC, DIGITS = (MODELS / name / "model.xml" for name in ("conv_openvino", "dynamic", "digits"))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Executor]:
    """The created plans."""
    executors: list[Executor] = []
    make = executor.make_plan

    def counted(*arguments: object) -> Executor:
        executors.append(make(*arguments))  # type: ignore[arg-type]
        return executors[-1]

    monkeypatch.setattr(executor, "make_plan", counted)
    return executors


def test_a_static_model_is_planned_when_it_is_compiled(plans: list[Executor]):
    compiled = irload.compile_model(STATIC)
    assert len(plans) == 1
    x = np.load(MODELS / "conv_openvino" / "input_0.npy")
    compiled(x)
    compiled.profile(x)
    compiled.explain()
    assert len(plans) == 1


def test_a_dynamic_model_is_planned_for_the_shapes_that_it_meets(plans: list[Executor]):
    compiled = irload.compile_model(DYNAMIC)
    compiled.prepare()
    assert plans == []
    x = np.load(MODELS / "dynamic" / "input_0.npy")
    compiled.prepare(x)
    count = len(plans)
    expected = np.load(MODELS / "dynamic" / "expected_0.npy")
    np.testing.assert_allclose(compiled(x)[0], expected, rtol=1e-5, atol=1e-6)
    assert len(plans) == count
    with pytest.raises(irload.InputInvalid):
        compiled.prepare(x[0])


def test_plain_execution_makes_no_plan(plans: list[Executor]):
    irload.compile_model(STATIC, optimize=False)(np.load(MODELS / "conv_openvino" / "input_0.npy"))
    assert plans == []


def test_limits_and_memory_hold_during_planning(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(irload.LimitExceeded, match=r"model\.xml") as error:
        irload.compile_model(STATIC, limits=irload.Limits(peak_bytes=100))
    assert "peak" in str(error.value)

    def fails(*_: object) -> Executor:
        raise MemoryError("no 3 TiB")

    monkeypatch.setattr(executor, "make_plan", fails)
    with pytest.raises(irload.OutOfMemory, match="out of memory for the plan: no 3 TiB; use smaller inputs"):
        irload.compile_model(STATIC)


def test_irrun_shows_planning_and_inference_separately():
    done = irrun_process(DIGITS, MODELS / "digits" / "digit_7_0.npy", "--json")
    document = json.loads(done.stdout)
    assert document["planning_seconds"] > 0
    assert document["seconds"] > 0
