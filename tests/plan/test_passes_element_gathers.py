"""GatherElements at indices in range becomes a Gather; others are computed, and report indices out of range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irload
from irload.errors import ExecutionError
from irload.model import Model
from irload.plan.ir.steps import GatherStep
from models.ir import Ref
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees
from tests.plan.lowering.nodes import clamped


def largest(net: Net, axis: int) -> Ref:
    """The positions of the four largest of five or six numbers along an axis, [3, 4, 5]."""
    shape = [3, 4, 5]
    count, shape[axis] = shape[axis], 6
    how = {"axis": axis, "mode": "max", "sort": "value", "index_element_type": "i64"}
    return net.ops("TopK", net.input(*shape), net.constant(count), version="opset3", outputs=2, **how)[1]


def positions(net: Net, shape: tuple[int, ...], count: int = 4) -> Ref:
    """The positions of the largest numbers along axis 1."""
    how = {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i64"}
    return net.ops("TopK", net.input(*shape), net.constant(count), version="opset3", outputs=2, **how)[1]


def operation(net: Net, type: str, indices: Ref, number: int) -> Ref:
    """An operation on integers and a number, in i64."""
    wide = net.op("Convert", indices, destination_type="i64")
    return net.op(type, wide, net.constant(number), auto_broadcast="numpy")


def selected(net: Net, number: int) -> Ref:
    """Clamped integers if they are negative, otherwise a number."""
    zero, wide = net.constant(0), net.op("Convert", clamped(net, -6, 5), destination_type="i64")
    mask = net.op("Less", wide, zero, auto_broadcast="numpy")
    return net.op("Select", mask, wide, net.constant(number), auto_broadcast="numpy")


def buckets(net: Net, count: int) -> Ref:
    """The numbers of buckets from 0 to `count`, [3, 4, 5]."""
    boundaries = net.constant(np.linspace(-1, 8.5, count, dtype=np.float32))
    how = {"output_type": "i64", "with_right_bound": True}
    return net.op("Bucketize", net.input(3, 4, 5), boundaries, version="opset3", **how)


IN_RANGE: dict[str, tuple[Callable[[Net], Ref], int]] = {
    "clamped, first axis": (lambda net: clamped(net, 0, 5), 0),
    "clamped, second axis": (lambda net: clamped(net, -6, 5), 1),
    "clamped, last axis": (lambda net: clamped(net, 0, 5.5), 2),
    "of a TopK": (lambda net: largest(net, 1), 1),
    "tiled": (lambda net: net.op("Tile", positions(net, (3, 6, 1)), net.constant([1, 1, 5])), 1),
    "of two TopKs": (
        lambda net: net.op("Concat", positions(net, (3, 6, 5), 2), positions(net, (3, 5, 5), 2), axis=1),
        1,
    ),
    "remainders": (lambda net: operation(net, "FloorMod", clamped(net, -9, 9), 6), 1),
    "moved": (lambda net: operation(net, "Subtract", operation(net, "Add", clamped(net, 0, 8), 2), 5), 1),
    "limited": (lambda net: operation(net, "Maximum", operation(net, "Minimum", clamped(net, -9, 9), 5), -6), 1),
    "selected": (lambda net: selected(net, 5), 1),
    "buckets": (lambda net: buckets(net, 5), 1),
    "constants": (lambda net: net.constant(np.arange(60).reshape(3, 4, 5) % 11 - 5), 2),
}
OUT_OF_RANGE: dict[str, tuple[Callable[[Net], Ref], float]] = {
    "inputs": (lambda net: net.integers(3, 6, 5), 6),
    "clamped beyond the axis": (lambda net: clamped(net, 0, 6), 9),
    "clamped below the axis": (lambda net: clamped(net, -7, 5), -9),
    "selected beyond the axis": (lambda net: selected(net, 6), 9),
    "buckets beyond the axis": (lambda net: buckets(net, 6), 9),
    "moved beyond the axis": (lambda net: operation(net, "Add", clamped(net, 0, 5), 1), 9),
    "remainders beyond the axis": (lambda net: operation(net, "FloorMod", clamped(net, 0, 6), 7), 9),
    "wrapped": (lambda net: operation(net, "Minimum", operation(net, "Add", clamped(net, 0, 5), 2**63 - 3), 5), 9),
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
