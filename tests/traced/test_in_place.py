"""Variables that a plan only reads, such as the keys of an encoder in its decoder, are read in the request's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.traced import growth
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.traced import TracedPlans
from tests.plan.graphs import Net
from tests.traced.test_plans import values

WIDTH = 16


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled kernels if they are installed; variables of all sizes are read in place."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    monkeypatch.setattr(growth, "LEAST_IN_PLACE", 1)


def decoder(*, grows: bool, views: bool = False) -> Model:
    """Attention of x to a variable that keeps its value, and perhaps to one that grows."""
    net = Net()
    x, encoded = net.input(-1, -1, WIDTH), net.input(-1, -1, WIDTH)

    def variable(name: str, initial: Any) -> Any:
        how: dict[str, Any] = {"variable_id": name, "variable_type": "f32", "variable_shape": f"?,?,{WIDTH}"}
        return net.op("ReadValue", initial, version="opset6", **how)

    def attention(query: Any, keys: Any) -> Any:
        return net.op("ScaledDotProductAttention", query, keys, keys, version="opset13", causal=False)

    kept = variable("encoded", encoded)
    net.op("Assign", kept, version="opset6", variable_id="encoded")
    if views:
        turned = net.op("Transpose", kept, net.constant([0, 2, 1]))
        weights = net.op("SoftMax", net.op("MatMul", x, turned, transpose_a=False, transpose_b=False), axis=2)
        y = net.op("MatMul", weights, kept, transpose_a=False, transpose_b=False)
    else:
        y = attention(x, kept)
    if grows:
        shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
        batch = net.op("Gather", shape, net.constant([0]), net.constant(0))
        empty = net.concat(batch, net.constant([0, WIDTH]), axis=0)
        zeros = net.op("Broadcast", net.constant(np.float32(0)), empty, version="opset3", mode="numpy")
        joined = net.concat(variable("past", zeros), y, axis=1)
        net.op("Assign", joined, version="opset6", variable_id="past")
        y = attention(y, joined)
    return net.model(net.op("Multiply", y, net.constant(np.float32(2)), auto_broadcast="numpy"))


class Pair:
    """A request and its plain counterpart, which get the same inputs."""

    def __init__(self, compiled: CompiledModel, plain: CompiledModel) -> None:
        self.requests = compiled.create_infer_request(), plain.create_infer_request()

    def run(self, x: Array, encoded: Array) -> None:
        actual, expected = (r.infer([x, encoded])[0] for r in self.requests)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)

    def set(self, value: Array) -> None:
        for request in self.requests:
            for state in request.query_state():
                if state.name == "encoded":
                    state.state = value


def pair(model: Model, **options: Any) -> tuple[CompiledModel, Pair, Pair]:
    compiled, plain = irload.compile_model(model, **options), irload.compile_model(model, 1, optimize=False)
    return compiled, Pair(compiled, plain), Pair(compiled, plain)


def outside(compiled: CompiledModel) -> set[int]:
    """The numbers of variables that plans read in place."""
    return {len(variant.planned.caller_inputs) for variant in compiled._traced.families.recent}


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2}, {"threads": 1, "jit": False}], ids=str)
@pytest.mark.parametrize("views", [False, True], ids=["attention", "views"])
@pytest.mark.parametrize("grows", [False, True], ids=["fixed", "grows"])
def test_tokens_of_several_requests(options: dict[str, Any], *, grows: bool, views: bool) -> None:
    """Requests share plans, and have different values, of different lengths; one is set while tokens are decoded."""
    compiled, a, b = pair(decoder(grows=grows, views=views), **options)
    first, second = values(2, 9, WIDTH, seed=1), values(2, 14, WIDTH, seed=2)
    for turn in range(9):
        rows = 4 if turn == 0 else 1 + turn % 2
        a.run(values(2, rows, WIDTH, seed=turn), first)
        b.run(values(2, rows, WIDTH, seed=50 + turn), second)
        if turn == 5:
            a.set(values(2, 14, WIDTH, seed=3))
        if turn == 7:
            b.set(values(2, 5, WIDTH, seed=4))
    assert (max(outside(compiled)) == 1) == (options.get("jit") is None and compiled_kernels(compiled))


def compiled_kernels(compiled: CompiledModel) -> bool:
    from irload.plan.backends.registry import compiled_backend

    return compiled_backend(compiled._options) is not None


def test_a_value_in_another_memory_layout() -> None:
    _, a, _ = pair(decoder(grows=True), threads=1)
    for turn in range(4):
        a.run(values(2, 2, WIDTH, seed=turn), values(2, 9, WIDTH))
    for request in a.requests:
        request.variables["encoded"] = values(2, WIDTH, 9, seed=7).swapaxes(1, 2)
    for turn in range(3):
        a.run(values(2, 1, WIDTH, seed=turn), values(2, 9, WIDTH))


def test_the_last_plan_runs_the_next_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are looked up by the types of all variables only when another variable than the growing one has changed."""
    compiled, a, _ = pair(decoder(grows=True), threads=1)
    lookups: list[object] = []
    find = TracedPlans.find
    monkeypatch.setattr(TracedPlans, "find", lambda self, *args: lookups.append(args) or find(self, *args))

    def tokens(count: int) -> int:
        """The lookups while tokens are decoded."""
        lookups.clear()
        for k in range(count):
            a.run(values(2, 1, WIDTH, seed=k), values(2, 9, WIDTH))
        return len(lookups)

    assert tokens(4) > 0
    assert tokens(4) == 0
    a.set(values(2, 5, WIDTH, seed=1))
    assert tokens(1) == 1
    assert tokens(4) == 0
    for request in a.requests:
        del request.variables["encoded"]
    assert tokens(1) == 1
    assert compiled._traced.families.recent
