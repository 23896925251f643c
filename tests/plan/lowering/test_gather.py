"""Rows of a table that the file stores as f16, and batches of slices."""

from __future__ import annotations

import numpy as np
import pytest

from irload.model import Model
from irload.plan.ir.steps import ComputeStep, GatherStep
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees
from tests.plan.lowering.nodes import clamped

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


@pytest.mark.parametrize("batches", [1, 2, -1])
def test_batches_of_slices(batches: int) -> None:
    net = Net()
    data, rows = net.input(2, 3, 6, 4), clamped(net, -8, 8, 2, 3, 5)
    model = net.model(net.op("Gather", data, rows, net.constant(2), version="opset8", batch_dims=batches))
    (step,) = [s for s in plan_of(model, net.shapes).program.steps if isinstance(s, GatherStep)]
    assert step.shared == batches % 3
    agrees(model, net.shapes, tolerance=0)
