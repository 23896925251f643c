"""An If with a known condition becomes the steps of its branch; all others stay operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino
import pytest

import irload
from irload.core import element as et
from irload.errors import LimitExceeded, ShapeMismatch
from irload.model import Model
from irload.plan.ir.steps import ComputeStep
from tests.harness.body import Body, Value, input_entry, output_entry, port_map
from tests.harness.runtime import core

NUMPY: dict[str, Any] = {"auto_broadcast": "numpy"}
X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
Condition = Callable[[Body, Value], Value]
Branch = Callable[[Body, Value], Value]


def doubled(body: Body, x: Value) -> Value:
    return body.op("Multiply", x, body.constant(np.float32(2)), **NUMPY)


def product(body: Body, x: Value) -> Value:
    weights = body.constant(np.eye(6, dtype=np.float32) * 3)
    return body.op("MatMul", x, weights, transpose_a=False, transpose_b=False)


def unchanged(body: Body, x: Value) -> Value:
    return x


def large(body: Body, x: Value) -> Value:
    wide = body.op("Broadcast", x, body.constant(np.array([500, 4, 6])), version="opset3", mode="bidirectional")
    return body.op("ReduceMax", wide, body.constant(np.array([0])), keep_dims=False)


def nested(body: Body, x: Value) -> Value:
    return choice(body, x, lambda b, _: b.constant(np.array(False)), unchanged, doubled)


def choice(graph: Body, x: Value, condition: Condition, then: Branch, otherwise: Branch) -> Value:
    """An If on x."""
    tail = ""
    for tag, branch in (("then", then), ("else", otherwise)):
        body = Body(graph.weights)
        inside = body.parameter(et.f32, "?,6")
        result = body.result(branch(body, inside))
        tail += port_map(input_entry(1, inside), output_entry(2, result), tag=f"{tag}_port_map") + body.xml(
            f"{tag}_body"
        )
    return graph.nested("If", "opset8", [condition(graph, x), x], 1, tail)[0]


def written(condition: Condition, then: Branch, otherwise: Branch, rows: str) -> tuple[bytes, bytes]:
    graph = Body(bytearray())
    x = graph.parameter(et.f32, f"{rows},6")
    y = choice(graph, graph.op("ReLU", x), condition, then, otherwise)
    graph.result(graph.op("Subtract", y, graph.constant(np.float32(1)), **NUMPY))
    return graph.model()


def model(condition: Condition, then: Branch, otherwise: Branch, rows: str = "4") -> Model:
    return irload.read_model(*written(condition, then, otherwise, rows))


def known(value: bool) -> Condition:
    return lambda body, x: body.constant(np.array(value))


def rows_are(type: str, number: int) -> Condition:
    """A comparison of the number of rows, as TorchScript writes it."""

    def condition(body: Body, x: Value) -> Value:
        shape = body.op("ShapeOf", x, version="opset3", output_type="i64")
        rows = body.op("Gather", shape, body.constant(np.array(0)), body.constant(np.array(0)), version="opset8")
        return body.op(type, rows, body.constant(np.array(number)), **NUMPY)

    return condition


def of_values(body: Body, x: Value) -> Value:
    return body.op("Greater", body.op("ReduceMax", x, body.constant(np.array([0, 1]))), body.constant(np.float32(0)))


def operations(branching: Model) -> list[str]:
    """The operations that the plans of the model compute, also of bodies."""
    compiled = irload.compile_model(branching, 1, jit=False)
    compiled(X)
    steps = [step for plans in compiled._pools.values() for plan in plans for step in plan.program.steps]
    return [step.op.type for step in steps if isinstance(step, ComputeStep)]


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("then", [doubled, product, unchanged, nested])
def test_a_known_condition(then: Branch, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    branching = model(known(value), then, doubled)
    assert "If" not in operations(branching)
    plain = irload.compile_model(branching, 1, optimize=False)(X)[0]
    np.testing.assert_allclose(irload.compile_model(branching, 1)(X)[0], plain, rtol=1e-6)
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    np.testing.assert_allclose(irload.compile_model(branching, 1)(X)[0], plain, rtol=1e-6)


def test_other_conditions() -> None:
    assert "If" in operations(model(of_values, doubled, product))


def test_a_branch_obeys_the_limits() -> None:
    branching = model(known(True), large, doubled)
    with pytest.raises(LimitExceeded, match="tensor"):
        irload.compile_model(branching, 1, limits=irload.Limits(tensor_bytes=20_000))(X)


def test_layers_of_a_branch_are_not_observed() -> None:
    """The names of its layers are not names of the graph."""
    branching = model(known(True), product, doubled)
    comparison = irload.compare("fast", branching, [X])
    assert comparison.passed
    assert "MatMul" not in {layer.operation for layer in comparison.layers}


def rows_of(count: int) -> Branch:
    """A branch that is valid for one number of rows."""
    return lambda body, x: body.op("Reshape", x, body.constant(np.array([count, 6])), special_zero=False)


@pytest.mark.parametrize("jit", ["off", "auto"])
@pytest.mark.parametrize("optimize", [True, False])
def test_shapes_may_suit_only_the_branch_that_runs(jit: str, optimize: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", jit)
    xml, weights = written(of_values, rows_of(4), rows_of(3), rows="?")
    runtime = core().compile_model(core().read_model(xml, openvino.Tensor(np.frombuffer(weights, np.uint8))), "CPU")
    compiled = irload.compile_model(irload.read_model(xml, weights), 1, optimize=optimize)
    for x in (X, -np.abs(X[:3]), X * 2, -np.abs(X[1:])):
        np.testing.assert_array_equal(compiled(x)[0], runtime(x)[0])
    for x in (X[:3], -np.abs(X), X[:2]):
        with pytest.raises(ShapeMismatch, match="Reshape"):
            compiled(x)
        with pytest.raises(RuntimeError, match="reshape pattern"):
            runtime(x)
