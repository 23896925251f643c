"""Masks that exporters build from Range, Gather and comparisons of positions, for each token of a decoder."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.model import Model
from tests.harness import ir
from tests.plan.graphs import Net

LENGTHS = (5, 6, 9, 7, 33, 5)


def positions(net: Net, start: int, stop: ir.Ref) -> ir.Ref:
    """start, start + 1, … before `stop`."""
    first, one = net.constant(start), net.constant(1)
    return net.op("Range", first, stop, one, version="opset4", output_type="i64")


def length(net: Net, x: ir.Ref) -> ir.Ref:
    """The length of axis 1."""
    sizes = net.op("ShapeOf", x, version="opset3", output_type="i64")
    return net.op("Gather", sizes, net.constant(1), net.constant(0), version="opset8", batch_dims=0)


def masked(start: int, relation: str, query: int) -> Model:
    """x [1,n] plus 0 where k `relation` n + `query` and element `start` + k of a mask [1,m] are true, else plus −5."""
    net = Net()
    x, mask = net.input(1, -1), net.integers(1, -1)
    count = length(net, x)
    keys = net.reshape(positions(net, 0, count), 1, -1)
    seen = net.op(relation, keys, net.op("Add", count, net.constant(query)))
    seen = net.op("BitwiseAnd", net.constant(np.array(True)), seen, version="opset13")
    rows = net.op("Convert", positions(net, start, net.op("Add", count, net.constant(start))), destination_type="i32")
    rows = net.op("Add", net.reshape(rows, 1, 1, -1), net.constant(np.zeros((1, 1, 1), np.int32)))
    flags = net.reshape(net.op("Convert", mask, destination_type="boolean"), -1, 1)
    flags = net.op("Gather", flags, rows, net.constant(0), version="opset8", batch_dims=0)
    seen = net.op("BitwiseAnd", seen, net.reshape(flags, 1, -1), version="opset13")
    bias = net.op("Select", seen, net.constant(np.float32(0)), net.constant(np.float32(-5)), auto_broadcast="numpy")
    return net.model(net.op("Add", x, bias))


def steps(model: Model, longer: int) -> tuple[str, list[str]]:
    """The titles of the steps that compute and of the late steps, after a comparison with plain execution."""
    compiled, plain = (irload.compile_model(model, 1, optimize=on) for on in (True, False))
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        feed = [rng.standard_normal((1, n)).astype(np.float32), rng.integers(0, 2, (1, n + longer))]
        np.testing.assert_array_equal(compiled(feed)[0], plain(feed)[0])
    (variant,) = compiled._traced.families.recent
    planned = variant.planned
    computed = "+".join(step.title for step in planned.program.steps if not step.keeps_elements)
    return computed, [step.title for step in planned.late]


@pytest.mark.parametrize("longer", [0, 1, 4])
@pytest.mark.parametrize(("relation", "query"), [("LessEqual", -1), ("Less", 0), ("LessEqual", 3)])
def test_all_positions(relation: str, query: int, longer: int) -> None:
    assert steps(masked(0, relation, query), longer) == ("Convert+Select+Add", [])


@pytest.mark.parametrize(
    ("relation", "query"), [("LessEqual", -2), ("Less", -1), ("Greater", -4), ("GreaterEqual", -1), ("NotEqual", 0)]
)
def test_some_positions(relation: str, query: int) -> None:
    computed, late = steps(masked(0, relation, query), 0)
    assert {"Range", relation} <= {*late}
    assert computed == "Convert+BitwiseAnd+Select+Add"


@pytest.mark.parametrize(("start", "longer"), [(2, 2), (2, 3), (2, 0), (-1, 0), (-2, 1)])
def test_shifted_positions(start: int, longer: int) -> None:
    """Indices outside of the mask give zeros, negative ones count from its end."""
    _, late = steps(masked(start, "LessEqual", 0), longer)
    assert ("Range" in late) == (start < 0 or longer < start)


def test_sums_that_overflow() -> None:
    """k + 2³¹ − 1 in i32 is negative for all positions k but the first, so it is not above 5."""
    net = Net()
    x = net.input(1, -1)
    keys = net.op("Convert", positions(net, 0, length(net, x)), destination_type="i32")
    keys = net.op("Add", keys, net.constant(np.array([2**31 - 1], np.int32)))
    seen = net.op("Greater", keys, net.constant(np.array([5], np.int32)))
    seen = net.op("BitwiseAnd", net.op("Greater", x, net.constant(np.float32(0))), seen, version="opset13")
    model = net.model(net.op("Select", seen, x, net.constant(np.float32(-5)), auto_broadcast="numpy"))
    compiled, plain = (irload.compile_model(model, 1, optimize=on) for on in (True, False))
    for n in LENGTHS:
        feed = np.ones((1, n), np.float32)
        np.testing.assert_array_equal(compiled(feed)[0], plain(feed)[0])
