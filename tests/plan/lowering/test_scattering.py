"""Scatters at known indices that fill a box become views and concatenations; all others are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.model import Model
from irload.plan.ir.steps import ComputeStep
from irload.plan.lowering.scattering import IndexBox, box_of
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees


def assigned(net: Net, shape: tuple[int, ...], index: tuple[slice, ...], *, flat: bool = True) -> Model:
    """`x[index] = y` as exporters write it: with an index for each element, of the flat array or of all axes."""
    places = np.arange(np.prod(shape)).reshape(shape)[index]
    indices = places.reshape(-1, 1) if flat else np.stack(np.unravel_index(places, shape), axis=-1)
    updates = net.input(*indices.shape[:-1])
    data = net.op("Reshape", net.input(*shape), net.constant([-1]), special_zero=False) if flat else net.input(*shape)
    y = net.op("ScatterNDUpdate", data, net.constant(indices), updates, version="opset4")
    return net.model(net.op("ReLU", y))


def is_planned(model: Model, net: Net) -> bool:
    return not any(isinstance(s, ComputeStep) for s in plan_of(model, net.shapes).program.steps)


@pytest.mark.parametrize("seed", range(60))
def test_assignments_to_slices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 7, int(rng.integers(1, 5))))
    index: list[slice] = []
    for size in shape:
        start, step = int(rng.integers(0, size)), int(rng.integers(1, 3)) if rng.random() < 0.3 else 1
        index.append(slice(None) if rng.random() < 0.4 else slice(start, int(rng.integers(start, size)) + 1, step))
    if any(size % (s.step or 1) for s, size in zip(index, shape, strict=True)):
        index = [slice(s.start, s.stop) for s in index]
    net = Net(seed)
    model = assigned(net, shape, tuple(index), flat=bool(seed % 2))
    assert is_planned(model, net)
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize("type", ["f32", "i64", "boolean"])
def test_any_type_and_blocks_of_the_last_axes(type: str) -> None:
    net = Net()
    x, y = (net.op("Convert", net.input(*shape), destination_type=type) for shape in ((2, 5, 3), (2, 2, 3)))
    indices = np.stack(np.meshgrid([0, 1], [-4, -3], indexing="ij"), axis=-1)  # negative indices
    model = net.model(
        net.op(
            "Convert",
            net.op("ScatterNDUpdate", x, net.constant(indices), y, version="opset4"),
            destination_type="f32",
        )
    )
    steps = plan_of(model, net.shapes).program.steps
    assert {s.op.type for s in steps if isinstance(s, ComputeStep)} == (set() if type == "f32" else {"Convert"})
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("indices", "planned"), [([1, 2], True), ([0, 2], True), ([-1], True), ([2, 1], False)])
def test_scatter_update(axis: int, indices: list[int], planned: bool) -> None:
    net = Net()
    shape = [4, 4, 4]
    shape[axis] = len(indices)
    model = net.model(
        net.op(
            "ScatterUpdate",
            net.input(4, 4, 4),
            net.constant(indices),
            net.input(*shape),
            net.constant(axis),
            version="opset3",
        )
    )
    assert is_planned(model, net) == planned
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize(
    "indices",
    [[[0], [0]], [[1], [0]], [[0], [1], [3]], [[0], [1], [4], [4]], [[2], [3], [8], [9]]],
    ids=["repeated", "backwards", "uneven", "repeated at the end", "across the end of a row"],
)
def test_other_indices_are_computed_by_the_operation(indices: list[list[int]]) -> None:
    net = Net()
    y = net.op("ScatterNDUpdate", net.input(10), net.constant(indices), net.input(len(indices)), version="opset4")
    model = net.model(y)
    assert not is_planned(model, net)
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize("reduction", ["sum", "max"])
def test_reductions_are_left_to_the_operation(reduction: str) -> None:
    net = Net()
    y = net.op(
        "ScatterNDUpdate", net.input(4), net.constant([[1], [2]]), net.input(2), version="opset15", reduction=reduction
    )
    model = net.model(y)
    assert not is_planned(model, net)
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize(
    ("places", "total", "box"),
    [
        ([3], 12, IndexBox((12,), (3,), (1,))),
        ([3, 4, 5], 12, IndexBox((12,), (3,), (3,))),
        ([1, 2, 5, 6, 9, 10], 12, IndexBox((3, 4), (0, 1), (3, 2))),
        ([1, 3, 5], 6, IndexBox((3, 2), (0, 1), (3, 1))),
        ([1, 3, 5], 7, None),
        ([], 7, None),
    ],
)
def test_boxes(places: list[int], total: int, box: IndexBox | None) -> None:
    array: Array = np.array(places, np.int64)
    assert box_of(array, total) == box
