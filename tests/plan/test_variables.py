"""Variables in plans: their values are inputs, so that the steps of a decoder run in one plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.sanitizing import sanitizing
from tests.harness.body import Body

WIDTH = 16


def decoder(element: et.ElementType = et.f32, assigned: int = 1) -> Model:
    """Attention over all rows seen so far, which a variable [batch, rows, WIDTH] keeps; `beam` reorders its batch.

    `assigned`: the number of outputs of Assign.
    """
    graph = Body(bytearray())
    x, beam = graph.parameter(et.f32, f"?,?,{WIDTH}"), graph.parameter(et.i32, "?")
    rows = graph.op("Convert", x, destination_type=element) if element is not et.f32 else x
    batch = graph.op("Gather", graph.op("ShapeOf", x, version="opset3", output_type="i64"), *numbers(graph, [0], 0))
    empty = graph.op("Concat", batch, graph.constant(np.array([0, WIDTH])), axis=0)
    initial = graph.op("Broadcast", graph.constant(0.0, element), empty, version="opset3", mode="numpy")
    declared: dict[str, Any] = {"variable_id": "rows", "variable_type": element, "variable_shape": f"?,?,{WIDTH}"}
    past = graph.op("ReadValue", initial, version="opset6", **declared)
    past = graph.op("Gather", past, beam, *numbers(graph, 0), version="opset8", batch_dims=0)
    kept = graph.op("Concat", past, rows, axis=1)
    graph.nested("Assign", "opset6", [kept], assigned, "", variable_id="rows")
    if element is not et.f32:
        kept = graph.op("Convert", kept, destination_type=et.f32)
    weights = graph.constant(np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32))
    query = graph.op("MatMul", x, weights, transpose_a=False, transpose_b=False)
    scores = graph.op("MatMul", query, kept, transpose_a=False, transpose_b=True)
    weighted = graph.op("SoftMax", scores, axis=2)
    graph.result(graph.op("MatMul", weighted, kept, transpose_a=False, transpose_b=False))
    return irload.read_model(*graph.model())


def numbers(graph: Body, *values: Any) -> list[Any]:
    return [graph.constant(np.array(v, np.int64)) for v in values]


class Twin:
    """One request by plans and one by plain execution, which must agree."""

    def __init__(self, planned: irload.CompiledModel, plain: irload.CompiledModel) -> None:
        self.requests = planned.create_infer_request(), plain.create_infer_request()

    def infer(self, *inputs: Array) -> None:
        actual, expected = (request.infer(list(inputs))[0] for request in self.requests)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
        a, b = (request.query_state()[0].state for request in self.requests)
        np.testing.assert_array_equal(a, b)


def compiled(model: Model, threads: int = 1) -> tuple[irload.CompiledModel, irload.CompiledModel]:
    return irload.compile_model(model, threads), irload.compile_model(model, 1, optimize=False)


def some(rng: np.random.Generator, batch: int, rows: int) -> tuple[Array, Array]:
    """Rows, and an order of the batch."""
    return rng.standard_normal((batch, rows, WIDTH)).astype(np.float32), rng.permutation(batch).astype(np.int32)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("sanitized", [True, False])  # a sanitized plan is for one shape
@pytest.mark.parametrize("element", [et.f32, et.f16, et.bf16])
@pytest.mark.parametrize("seed", range(3))
def test_sequences(element: et.ElementType, seed: int, sanitized: bool) -> None:
    """Prompts, tokens, several tokens at once, resets and assigned states, in two requests of one model."""
    with sanitizing(sanitized):
        run_sequences(element, seed)


def run_sequences(element: et.ElementType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    models = compiled(decoder(element), int(rng.integers(1, 3)))
    twins = [Twin(*models), Twin(*models)]
    batches = [0, 0]
    for _ in range(16):
        k = int(rng.integers(2))
        if not batches[k] or rng.random() < 0.15:
            for request in twins[k].requests:
                request.reset_state()
            batches[k] = int(rng.integers(1, 4))
        elif rng.random() < 0.15:
            rows = some(rng, batches[k], int(rng.integers(6)))[0].astype(element.dtype)
            for request in twins[k].requests:
                request.query_state()[0].state = rows
        twins[k].infer(*some(rng, batches[k], int(rng.choice([1, 1, 1, 2, 5]))))


@pytest.mark.parametrize("assigned", [0, 1])  # old exporters list no output of Assign
def test_tokens_share_one_plan(assigned: int) -> None:
    rng = np.random.default_rng(0)
    model, plain = compiled(decoder(assigned=assigned))
    plans = model._traced.families.recent
    with sanitizing(False):
        for prompt, count in ((7, 1), (7, 1), (9, 2), (5, 2), (7, 2)):
            twin = Twin(model, plain)
            for rows in [prompt, *[1] * 20]:
                twin.infer(*some(rng, 1, rows))
            assert len(plans) == count, "one for tokens, and one for prompts once they differ in length"
            assert len(model._schedules) == 1, "the first prompt"
            assert all(plan.remainder is None for plan in plans), "no layer runs outside of the plan"


def test_an_error_leaves_the_variables() -> None:
    rng = np.random.default_rng(0)
    request = irload.compile_model(decoder(), 1).create_infer_request()
    x, beam = some(rng, 2, 3)
    request.infer([x, beam])
    before = request.query_state()[0].state
    with pytest.raises(irload.IRError):
        request.infer([x, np.zeros(3, np.int32)])  # Concat of batches 3 and 2
    np.testing.assert_array_equal(request.query_state()[0].state, before)
    request.infer([x, beam])


def test_an_initial_value_is_not_computed_once_there_is_a_value() -> None:
    """Its error would otherwise end every inference."""
    graph = Body(bytearray())
    x, index = graph.parameter(et.f32, "?,2"), graph.parameter(et.i64, "1")
    rows = graph.op("Gather", graph.constant(np.ones((3, 2), np.float32)), index, *numbers(graph, 0), version="opset8")
    declared: dict[str, Any] = {"variable_id": "v", "variable_type": "f32", "variable_shape": "?,2"}
    kept = graph.op("Concat", graph.op("ReadValue", rows, version="opset6", **declared), x, axis=0)
    graph.op("Assign", kept, version="opset6", variable_id="v")
    graph.result(kept)
    request = irload.compile_model(irload.read_model(*graph.model()), 1).create_infer_request()
    ones = np.ones((1, 2), np.float32)
    for inputs, count in (([ones, [1]], 2), ([ones, [9]], 3)):
        inferred = request.infer([inputs[0], np.array(inputs[1], np.int64)])[0]
        assert inferred.shape == (count, 2)


def test_the_next_token_is_profiled() -> None:
    rng = np.random.default_rng(0)
    model = irload.compile_model(decoder(), 1)
    for rows in (6, 1):
        model(list(some(rng, 1, rows)))
    before = model._variables["rows"].copy()
    steps = model.profile(list(some(rng, 1, 1)))
    assert (1, 8, WIDTH) in [step.shape for step in steps]
    np.testing.assert_array_equal(model._variables["rows"], before)
