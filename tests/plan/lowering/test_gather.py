"""Rows of a table that the file stores as f16, and elements selected by indices whose range is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irload
from irload.errors import ExecutionError
from irload.model import Model
from irload.plan.ir.steps import ComputeStep, GatherStep
from models.ir import Ref
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

ROWS = 5000
TABLE = np.random.default_rng(0).standard_normal((ROWS, 64)).astype(np.float16)


def gathering(net: Net, table: np.ndarray, count: int) -> Model:
    """A model that takes `count` rows of a widened table and multiplies them."""
    widened = net.op("Convert", net.constant(table), destination_type="f32")
    x = net.input(count)
    rows = net.op("Convert", net.op("Abs", net.op("Floor", x)), destination_type="i64")
    return net.model(net.op("Gather", widened, rows, net.constant(0), version="opset8", batch_dims=0))


def tables(model: Model, net: Net) -> list[np.dtype[np.generic]]:
    """The types of the tables that the plan's Gathers read."""
    steps = plan_of(model, net.shapes).program.steps
    return [
        s.inputs[0].dtype
        for s in steps
        if isinstance(s, GatherStep) or (isinstance(s, ComputeStep) and s.op.type == "Gather")
    ]


def test_gathered_rows_are_widened() -> None:
    net = Net()
    model = gathering(net, TABLE, 3)
    assert tables(model, net) == [np.float16]
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize(("table", "count"), [(TABLE.astype(np.float32), 3), (TABLE, ROWS + 1)])
def test_other_tables_stay(table: np.ndarray, count: int) -> None:
    net = Net()
    model = gathering(net, table, count)
    assert tables(model, net) == [np.float32]
    agrees(model, net.shapes, tolerance=0)


def clamped(net: Net, low: float, high: float, *shape: int) -> Ref:
    """Integers from `low` to `high`, by default [3, 4, 5]."""
    nine = net.constant(np.float32(9))
    whole = net.op("Convert", net.op("Multiply", net.input(*shape or (3, 4, 5)), nine), destination_type="i64")
    return net.op("Convert", net.op("Clamp", whole, min=low, max=high), destination_type="i32")


def largest(net: Net, axis: int) -> Ref:
    """The positions of the four largest of five or six numbers along an axis, [3, 4, 5]."""
    shape = [3, 4, 5]
    count, shape[axis] = shape[axis], 6
    how = {"axis": axis, "mode": "max", "sort": "value", "index_element_type": "i64"}
    return net.ops("TopK", net.input(*shape), net.constant(count), version="opset3", outputs=2, **how)[1]


IN_RANGE: dict[str, tuple[Callable[[Net], Ref], int]] = {
    "clamped, first axis": (lambda net: clamped(net, 0, 5), 0),
    "clamped, second axis": (lambda net: clamped(net, -6, 5), 1),
    "clamped, last axis": (lambda net: clamped(net, 0, 5.5), 2),
    "of a TopK": (lambda net: largest(net, 1), 1),
    "constants": (lambda net: net.constant(np.arange(60).reshape(3, 4, 5) % 11 - 5), 2),
}
OUT_OF_RANGE: dict[str, tuple[Callable[[Net], Ref], float]] = {
    "inputs": (lambda net: net.integers(3, 6, 5), 6),
    "clamped beyond the axis": (lambda net: clamped(net, 0, 6), 9),
    "clamped below the axis": (lambda net: clamped(net, -7, 5), -9),
    "clamped to infinity": (lambda net: clamped(net, 0, float("inf")), 9),
}


def elements(indices: Callable[[Net], Ref], axis: int) -> tuple[Model, Net]:
    """A model that selects elements along an axis of six."""
    net, shape = Net(), [3, 4, 5]
    shape[axis] = 6
    data = net.input(*shape)
    return net.model(net.op("GatherElements", data, indices(net), version="opset6", axis=axis)), net


@pytest.mark.parametrize(("indices", "axis"), IN_RANGE.values(), ids=IN_RANGE)
def test_elements_at_indices_in_range(indices: Callable[[Net], Ref], axis: int) -> None:
    model, net = elements(indices, axis)
    (step,) = [s for s in plan_of(model, net.shapes).program.steps if isinstance(s, GatherStep)]
    assert (step.axis, step.shared) == (2, 2)
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize(("indices", "filled"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_indices_out_of_range_are_reported(indices: Callable[[Net], Ref], filled: float) -> None:
    model = elements(indices, 1)[0]
    feed = [np.full(p.shape, filled, p.element_type.dtype) for p in model.inputs]
    with pytest.raises(ExecutionError, match=r"GatherElements.*index -?\d+ is out of range for an axis of 6"):
        irload.compile_model(model, 1)(feed)


@pytest.mark.parametrize("batches", [1, 2, -1])
def test_batches_of_slices(batches: int) -> None:
    net = Net()
    data, rows = net.input(2, 3, 6, 4), clamped(net, -8, 8, 2, 3, 5)
    model = net.model(net.op("Gather", data, rows, net.constant(2), version="opset8", batch_dims=batches))
    (step,) = [s for s in plan_of(model, net.shapes).program.steps if isinstance(s, GatherStep)]
    assert step.shared == batches % 3
    agrees(model, net.shapes, tolerance=0)
