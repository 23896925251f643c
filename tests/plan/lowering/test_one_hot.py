"""OneHot becomes a comparison with the positions on its axis."""

from __future__ import annotations

import numpy as np
import pytest

from irload.model import Model
from irload.plan.ir.steps import ComputeStep
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

DEPTH = 4


def one_hot(net: Net, axis: int, values: tuple[object, object], indices: str = "i64", **attributes: object) -> Model:
    """OneHot of Convert(2 · x), whose indices range from below 0 to above the depth."""
    wide = net.op("Multiply", net.input(2, 3), net.constant(np.float32(2)), auto_broadcast="numpy")
    x = net.op("Convert", wide, destination_type=indices)
    scalars = [net.constant(np.array(v)) for v in (DEPTH, *values)]
    version = "opset16" if attributes else "opset1"
    return net.model(net.op("OneHot", x, *scalars, version=version, axis=axis, **attributes))


def operations(model: Model, net: Net) -> set[str]:
    steps = plan_of(model, net.shapes).program.steps
    return {s.op.type for s in steps if isinstance(s, ComputeStep)}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("values", [(np.float32(2), np.float32(-1)), (5, 7), (True, False)], ids=["f32", "i64", "bool"])
@pytest.mark.parametrize("indices", ["i32", "i64"])
def test_it_is_a_comparison(axis: int, values: tuple[object, object], indices: str) -> None:
    net = Net()
    model = one_hot(net, axis, values, indices)
    assert "OneHot" not in operations(model, net)
    agrees(model, net.shapes, tolerance=0)


@pytest.mark.parametrize("mode", ["ignore_negative", "normalize"])
def test_negative_indices(mode: str) -> None:
    net = Net()
    model = one_hot(net, 1, (np.float32(1), np.float32(0)), negative_indices_mode=mode)
    assert ("OneHot" in operations(model, net)) == (mode == "normalize")
    agrees(model, net.shapes, tolerance=0)


def test_other_types_are_computed() -> None:
    net = Net()
    model = one_hot(net, 1, (np.uint8(1), np.uint8(0)))
    assert "OneHot" in operations(model, net)
    agrees(model, net.shapes, tolerance=0)
