"""Graphs whose last shapes depend on values: one plan up to there, the other nodes interpreted, at every shape."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.model import Model
from tests.plan.graphs import Net
from tests.traced.test_plans import agrees, values, variants


def selecting() -> Model:
    """The positive numbers of a feature map, times its width and its batch."""
    net = Net()
    y = net.conv(net.input(-1, 3, -1, -1), 3, 4, 3)
    sizes = net.op("ShapeOf", y, version="opset3", output_type="i64")
    flat = net.op("Reshape", y, net.constant([-1]), special_zero=False)
    positive = net.op("NonZero", net.op("ReLU", flat), version="opset3", output_type="i64")
    picked = net.op("Gather", flat, net.op("Squeeze", positive, net.constant([0])), net.constant(0))
    width, batch = (
        net.op("Convert", net.op("Gather", sizes, net.constant([k]), net.constant(0)), destination_type="f32")
        for k in (3, 0)
    )
    return net.model(net.op("Multiply", net.op("Multiply", picked, width), batch), y)


def test_nodes_behind_the_plan_run_at_all_shapes() -> None:
    model = selecting()
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for seed, (batch, height, width) in enumerate([(2, 8, 9), (2, 12, 7), (3, 5, 16), (2, 12, 7), (4, 9, 9)]):
        agrees(compiled, plain, values(batch, 3, height, width, seed=seed))
    assert variants(compiled) == 1
    (variant,) = compiled._traced.families.recent
    assert variant.remainder is not None
    assert len(compiled._schedules) == 1, "only the first shape is scheduled alone"


def test_errors_behind_the_plan_name_the_layer() -> None:
    net = Net()
    y = net.conv(net.input(1, 3, -1, -1), 3, 4, 1)
    flat = net.op("Reshape", y, net.constant([-1]), special_zero=False)
    positive = net.op("NonZero", net.op("ReLU", flat), version="opset3", output_type="i64")
    model = net.model(net.op("Add", positive, net.constant(np.zeros((1, 70), np.int64))))
    compiled = irload.compile_model(model, 1)
    for size in (3, 4, 5):
        with pytest.raises(irload.IRError, match=r"Add.*cannot broadcast"):
            compiled(values(1, 3, size, size))


def test_slices_of_dims_that_depend_on_values_are_traced() -> None:
    """A slice of an axis of unknown size up to a symbol, and a product of sizes one of which is unknown."""
    net = Net()
    y = net.conv(net.input(1, 3, -1, -1), 3, 4, 1)
    sizes = net.op("ShapeOf", y, version="opset3", output_type="i64")
    width = net.op("Gather", sizes, net.constant([3]), net.constant(0))
    flat = net.op("Reshape", y, net.constant([-1]), special_zero=False)
    positive = net.op("NonZero", net.op("ReLU", flat), version="opset3", output_type="i64")
    first = net.op("Slice", positive, net.constant([0]), width, net.constant([1]), net.constant([1]), version="opset8")
    known = net.concat(net.op("ShapeOf", first, version="opset3", output_type="i64"), width, axis=0)
    count = net.op("ReduceProd", known, net.constant([0]), keep_dims=False)
    model = net.model(
        net.op("Convert", count, destination_type="f32"), net.op("Convert", first, destination_type="f32")
    )
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for height, width in ((4, 5), (6, 4), (5, 9)):
        agrees(compiled, plain, values(1, 3, height, width))
    assert variants(compiled) == 1
