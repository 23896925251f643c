"""Indices and depths that depend on sizes: one plan serves all shapes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irload
from irload.model import Model
from irload.plan.backends.llvm.target import host_target
from tests.plan.graphs import Net


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled kernels, if they are installed."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")


def computed_at(model: Model, *shapes: tuple[int, ...], jit: bool | None = None) -> set[str]:
    """Compare one plan for all shapes with plain execution. Returns the types of operations that run as `compute`."""
    compiled, plain = irload.compile_model(model, 1, jit=jit), irload.compile_model(model, optimize=False)
    rng = np.random.default_rng(0)
    for shape in shapes:
        given = [rng.uniform(-9, 9, shape).astype(np.float32)]
        np.testing.assert_array_equal(compiled(given)[0], plain(given)[0])
    assert compiled._traced.explained().startswith("other shapes: one plan")
    return set(re.findall(r"(\w+) → .* by compute", compiled.explain(given)))


@pytest.mark.parametrize("jit", [False, None])
def test_a_number_of_classes(jit: bool | None) -> None:
    """The exporter of PyTorch writes Select(n > 0, n, max + 1) as the depth of `one_hot(x, n)`."""
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
    computed = computed_at(model, (2, 3), (4, 5), (3, 7), (1, 2), (4, 5), jit=jit)
    assert ("OneHot" in computed) == (jit is False or host_target() is None)


def test_positions_on_an_axis() -> None:
    """The bound of the positions of a TopK is a size."""
    net = Net()
    x = net.input(2, -1, 4)
    how = {"axis": 1, "mode": "max", "sort": "value", "index_element_type": "i64"}
    ranked = net.ops("TopK", net.op("Abs", x), net.constant(3), version="opset3", outputs=2, **how)[1]
    model = net.model(net.op("GatherElements", x, ranked, version="opset6", axis=1))
    assert "GatherElements" not in computed_at(model, (2, 5, 4), (2, 9, 4), (2, 7, 4), (2, 5, 4))


def test_a_remainder_by_a_size() -> None:
    """The bound of the remainders is a size."""
    net = Net()
    x, zero = net.input(-1, 4), net.constant(0)
    size = net.op("Gather", net.op("ShapeOf", x, version="opset3", output_type="i64"), zero, zero, version="opset8")
    whole = net.op("Convert", net.op("Multiply", x, net.constant(np.float32(9))), destination_type="i64")
    indices = net.op("FloorMod", whole, size, auto_broadcast="numpy")
    model = net.model(net.op("GatherElements", x, indices, version="opset6", axis=0))
    assert "GatherElements" not in computed_at(model, (5, 4), (9, 4), (7, 4), (3, 4))
