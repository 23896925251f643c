"""Routers of experts: the weights of the best experts, scattered to their positions, without a check of positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.plan.ir.steps import ComputeStep, ScatterStep, TopKStep
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

RANKED: dict[str, Any] = {"mode": "max", "sort": "value", "index_element_type": "i64", "stable": False}


def scatter(net: Net, *, ranked: int, along: int, shape: tuple[int, int]) -> list[type]:
    """The steps of a plan that scatters two of each line of [5, 8], ranked along an axis, into zeros of a shape."""
    x = net.input(5, 8)
    best, positions = net.ops("TopK", x, net.constant(2), version="opset11", outputs=2, axis=ranked, **RANKED)
    positions = net.op("Convert", positions, destination_type="i32")
    zeros = net.constant(np.zeros(shape, np.float32))
    layer = net.op(
        "ScatterElementsUpdate", zeros, positions, best, net.constant(along), version="opset12", reduction="none"
    )
    model = net.model(net.op("Add", layer, net.constant(np.float32(1))))
    agrees(model, net.shapes, tolerance=0)
    return [type(step) for step in plan_of(model, net.shapes).program.steps]


@pytest.mark.parametrize(("axis", "shape"), [(1, (5, 8)), (1, (5, 12)), (0, (5, 8)), (-2, (7, 8))])
def test_positions_of_a_top_k_are_not_checked(axis: int, shape: tuple[int, int]) -> None:
    steps = scatter(Net(), ranked=axis, along=axis, shape=shape)
    assert steps[:2] == [TopKStep, ScatterStep]
    assert ComputeStep not in steps, "the Convert is not needed"


@pytest.mark.parametrize(("along", "shape"), [(0, (8, 8)), (1, (6, 8))])
def test_other_scatters_stay(along: int, shape: tuple[int, int]) -> None:
    assert ScatterStep not in scatter(Net(), ranked=1, along=along, shape=shape)


def test_positions_of_several_top_ks() -> None:
    """Sparse mixers choose the experts one by one, perhaps the same one twice."""
    net = Net()
    x, y = net.input(5, 8), net.input(5, 8)
    ranked = [net.ops("TopK", v, net.constant(1), version="opset11", outputs=2, axis=1, **RANKED) for v in (x, y, x)]
    positions = net.op("Convert", net.concat(*(p for _, p in ranked), axis=1), destination_type="i32")
    weights = net.op("Exp", net.concat(*(best for best, _ in ranked), axis=1))
    zeros = net.constant(np.zeros((5, 8), np.float32))
    how: dict[str, Any] = {"version": "opset12", "reduction": "none"}
    model = net.model(net.op("ScatterElementsUpdate", zeros, positions, weights, net.constant(1), **how))
    agrees(model, net.shapes, tolerance=1e-6)
    steps = [type(step) for step in plan_of(model, net.shapes).program.steps]
    assert ScatterStep in steps
    assert ComputeStep not in steps
