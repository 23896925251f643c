"""OneHot becomes a comparison with the positions on its axis."""

from __future__ import annotations

import numpy as np
import pytest

import irload
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


@pytest.mark.parametrize("jit", [False, None])
def test_a_number_of_classes_that_is_a_size(jit: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter of PyTorch writes Select(n > 0, n, max + 1) as the depth of `one_hot(x, n)`."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x, zero, one = net.input(-1, -1), net.constant(0), net.constant(1)
    count = net.op("Gather", net.op("ShapeOf", x, version="opset3", output_type="i64"), one, zero, version="opset8")
    indices = net.op("Convert", net.op("Abs", x), destination_type="i64")
    largest = net.op("ReduceMax", indices, net.constant([0, 1]), keep_dims=False)
    above = net.op("Add", largest, one, auto_broadcast="numpy")
    chosen = net.op("Greater", count, zero, auto_broadcast="numpy")
    depth = net.op("Select", chosen, count, above, auto_broadcast="numpy")
    values = (net.constant(np.float32(1)), net.constant(np.float32(0)))
    model = net.model(net.op("OneHot", indices, depth, *values, axis=1))
    compiled, plain = irload.compile_model(model, 1, jit=jit), irload.compile_model(model, optimize=False)
    rng = np.random.default_rng(0)
    for shape in ((2, 3), (4, 5), (3, 7), (1, 2), (4, 5)):
        given = [rng.uniform(-9, 9, shape).astype(np.float32)]
        np.testing.assert_array_equal(compiled(given)[0], plain(given)[0])
    assert "by compute" not in compiled.explain(given) or jit is False
