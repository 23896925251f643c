"""A Loop or TensorIterator with one iteration becomes the steps of its body; all others stay operations."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.model import Model
from irload.plan.ir.steps import ComputeStep
from tests.harness.body import Body, input_entry, output_entry

STEPS, WIDTH = 3, 8


def scan(trips: int | None, *, go: bool = True) -> Model:
    """state[k + 1] = state[k] · decay[k]; the states are written to rows of a buffer by their number.

    `trips`: the trip count; None: the number of rows of the input [?, WIDTH].
    """
    graph = Body(bytearray())
    body = Body(graph.weights)
    counter = body.parameter(et.i64, "")
    decay, state, buffer = (body.parameter(et.f32, f"{rows},{WIDTH}") for rows in ("1", "1", "?"))
    product = body.op("Multiply", state, decay, auto_broadcast="numpy")
    at = body.op("Unsqueeze", counter, body.constant(np.array([0])))
    written = body.op("ScatterUpdate", buffer, at, product, body.constant(np.array(0)), version="opset3")
    results = [body.result(v) for v in (product, written, product, body.constant(np.bool_(True)))]
    lines = (
        input_entry(-1, counter, purpose="current_iteration"),
        input_entry(2, decay, axis=0),
        input_entry(3, state),
        input_entry(4, buffer),
        output_entry(5, results[0]),
        output_entry(6, results[1]),
        output_entry(7, results[2], axis=0),
        output_entry(-1, results[3], purpose="execution_condition"),
    )
    x, first = graph.parameter(et.f32, f"?,{WIDTH}"), graph.parameter(et.f32, f"1,{WIDTH}")
    shape = graph.op("ShapeOf", x, version="opset3", output_type="i64")
    rows = graph.op("Gather", shape, graph.constant(np.array(0)), graph.constant(np.array(0)), version="opset8")
    count = rows if trips is None else graph.constant(np.array(trips))
    zeros = graph.op("Broadcast", graph.constant(np.float32(0)), shape, version="opset3", mode="numpy")
    inputs = [count, graph.constant(np.array(go)), graph.op("ReLU", x), first, zeros]
    graph.loop(inputs, body, lines, [(results[0], state), (results[1], buffer)], 3)
    return irload.read_model(*graph.model())


def operations(model: Model, rows: int) -> list[str]:
    """The operations that plans compute, also of bodies."""
    compiled = irload.compile_model(model, 1, jit=False)
    compiled(values(rows))
    steps = [step for plans in compiled._pools.values() for plan in plans for step in plan.program.steps]
    return [step.op.type for step in steps if isinstance(step, ComputeStep)]


def values(rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, WIDTH), (1, WIDTH))]


@pytest.mark.parametrize("options", [{"jit": False}, {}], ids=str)
def test_one_iteration_is_planned(options: dict[str, bool]) -> None:
    model = scan(None)
    assert operations(model, 1) == []
    compiled, plain = irload.compile_model(model, 1, **options), irload.compile_model(model, 1, optimize=False)
    for rows in (STEPS, 1, 2, 1):
        for actual, expected in zip(compiled(values(rows)).values(), plain(values(rows)).values(), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(("trips", "rows", "go"), [(2, 2, True), (1, 2, True), (1, 1, False), (None, STEPS, True)])
def test_other_loops_are_not(trips: int | None, rows: int, go: bool) -> None:
    """Several iterations, one on a part of an input, and none."""
    model = scan(trips, go=go)
    assert "Loop" in operations(model, rows)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for actual, expected in zip(compiled(values(rows)).values(), plain(values(rows)).values(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
