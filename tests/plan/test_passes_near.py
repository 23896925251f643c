"""Patterns, each with one variation: the plan computes the same as `compute`, fused or not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from models import ir
from tests.plan.exact import kernels, plan_of
from tests.plan.graphs import Net, agrees


def number(net: Net, value: float) -> ir.Ref:
    return net.constant(np.float32(value))


def binary(net: Net, type: str, x: ir.Ref, value: float) -> ir.Ref:
    """An operation with a number."""
    return net.op(type, x, number(net, value))


def normal(net: Net, n: Mapping[str, float]) -> ir.Ref:
    """(x − mean) / sqrt(variance + eps), or with one variation."""
    x = net.input(2, 3, 8)

    def mean(of: ir.Ref) -> ir.Ref:
        axis = 1 if n.get("axis") else -1
        return net.op(
            ("ReduceMean", "ReduceSum", "ReduceMax")[int(n.get("sum", 0))], of, net.constant([axis]), keep_dims=True
        )

    middle = net.op("Subtract", x, mean(x) if not n.get("of other") else mean(net.op("Sin", x)))
    middle = binary(net, "Multiply", middle, n["scale"])
    square = net.op("Multiply", middle, middle) if not n.get("cube") else net.op("Abs", middle)
    variance = net.op("ReduceMean", square, net.constant([-1]), keep_dims=True)
    variance = binary(net, "Multiply", variance, n["share"])
    root = binary(net, "Power", binary(net, "Add", variance, n["eps"]), n["power"])
    top = middle if not n.get("uncentred") else x
    y = net.op("Divide", top, root)
    y = net.op("Multiply", y, net.weights(8)) if n["gamma"] else y
    return net.op("Add", y, net.weights(8)) if n["beta"] else y


USUAL = {"scale": 1, "share": 1, "eps": 1e-3, "power": 0.5, "gamma": 1, "beta": 1}


@pytest.mark.parametrize(
    ("changed", "recognised"),
    [
        ({}, True),
        ({"gamma": 0}, True),
        ({"beta": 0}, True),
        ({"gamma": 0, "beta": 0}, True),
        ({"scale": 1.5}, False),
        ({"share": 1.5}, False),
        ({"eps": 0.5}, True),
        ({"eps": 0.0}, True),
        ({"power": 0.25}, False),
        ({"power": 1}, False),
        ({"axis": 1}, False),
        ({"sum": 1}, False),
        ({"sum": 2}, False),
        ({"of other": 1}, False),
        ({"cube": 1}, False),
        ({"uncentred": 1}, False),
    ],
)
def test_normalizations(changed: dict[str, float], recognised: bool) -> None:
    net = Net()
    model = net.model(normal(net, {**USUAL, **changed}))
    agrees(model, net.shapes, tolerance=1e-4)
    names = kernels(model, net.shapes)
    assert (names == ["rows"]) == recognised, names


@pytest.mark.parametrize("change", ["none", "share", "eps", "other", "axis", "power"])
def test_root_mean_square(change: str) -> None:
    net = Net()
    x = net.input(2, 3, 8)
    axes = [1] if change == "axis" else [-1]
    mean = net.op("ReduceMean", net.op("Multiply", x, x), net.constant(axes), keep_dims=True)
    mean = binary(net, "Multiply", mean, 1.5) if change == "share" else mean
    mean = binary(net, "Add", mean, 1e-3) if change != "eps" else net.op("Add", mean, net.weights(3, 1))
    mean = net.op("Abs", mean) if change == "eps" else mean
    root = binary(net, "Power", mean, -0.25 if change == "power" else -0.5)
    y = net.op("Multiply", net.op("Sin", x) if change == "other" else x, root)
    model = net.model(net.op("Multiply", y, net.weights(8)))
    agrees(model, net.shapes, tolerance=1e-4)
    assert (kernels(model, net.shapes) == ["rows"]) == (change == "none")


@pytest.mark.parametrize(
    "change", ["none", "thirds", "not negated", "swapped", "other axis", "of another", "a part", "wide", "doubled"]
)
def test_rotary(change: str) -> None:
    net = Net()
    x, other = net.input(2, 6, 8), net.input(2, 6, 8)
    axis = 1 if change == "other axis" else -1
    lengths = [3, 5] if change == "thirds" else [4, 4] if axis == -1 else [3, 3]
    first, second = net.ops("VariadicSplit", x, net.constant(axis), net.constant(lengths), outputs=2)
    if change == "a part":
        second = net.op("Slice", x, *(net.constant(v) for v in ([4], [8], [1], [-1])), version="opset8")
        first = net.op("Slice", x, *(net.constant(v) for v in ([0], [4], [1], [-1])), version="opset8")
    negated = second if change == "not negated" else binary(net, "Multiply", second, -2 if change == "doubled" else -1)
    turned = net.concat(*((first, negated) if change == "swapped" else (negated, first)), axis=axis)
    cosine, sine = net.weights(2, 6, 8) if change == "wide" else net.weights(6, 8), net.weights(6, 8)
    plain = net.op("Multiply", other if change == "of another" else x, cosine)
    model = net.model(net.op("Add", plain, net.op("Multiply", sine, turned)))
    agrees(model, net.shapes)
    assert ("halves" in kernels(model, net.shapes)) == (change in ("none", "a part", "wide"))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mask", [None, (1, 1, 5, 5), (2, 6, 5, 5), (1, 6, 1, 5), (5, 5), (5,)])
@pytest.mark.parametrize(
    "change", ["none", "keys alone", "another group", "repeated inside", "batch", "rows", "axis", "not attention"]
)
def test_heads(change: str, mask: tuple[int, ...] | None) -> None:
    net = Net()
    q = net.input(2, 6, 5, 4)

    def repeated(heads: int) -> ir.Ref:
        x = net.input(1 if change == "batch" else 2, heads, 1 if change == "rows" else 5, 4)
        inside = change == "repeated inside"
        wide = net.op("Unsqueeze", x, net.constant([1 if inside else 2]))
        shape = [2, 6 // heads, heads, 5, 4] if inside else [2, heads, 6 // heads, 5, 4]
        spread = net.op("Broadcast", wide, net.constant(shape), version="opset3", mode="numpy")
        return net.reshape(spread, 2, 6, 5, 4)

    k = repeated(2)
    v = net.input(2, 6, 5, 4) if change == "keys alone" else repeated(3 if change == "another group" else 2)
    scores = net.op("MatMul", q, k, transpose_a=False, transpose_b=True)
    scores = binary(net, "Multiply", scores, 0.5)
    scores = scores if mask is None else net.op("Add", scores, net.input(*mask))
    weights = net.op("SoftMax", scores, axis=2 if change == "axis" else 3)
    weights = net.op("Abs", weights) if change == "not attention" else weights
    model = net.model(net.op("MatMul", weights, v, transpose_a=False, transpose_b=False))
    agrees(model, net.shapes)
    names = kernels(model, net.shapes)
    assert ("head by head" in names) == (change not in ("axis", "not attention"))
    assert ("copy" in names) == (change not in ("none",)), names


def test_heads_without_a_batch() -> None:
    net = Net()
    q = net.input(6, 5, 4)
    k, v = (
        net.reshape(
            net.op(
                "Broadcast", net.reshape(net.input(2, 5, 4), 2, 1, 5, 4), net.constant([2, 3, 5, 4]),
                version="opset3", mode="numpy",
            ),
            6, 5, 4,
        )
        for _ in range(2)
    )  # fmt: skip
    weights = net.op("SoftMax", net.op("MatMul", q, k, transpose_a=False, transpose_b=True), axis=2)
    model = net.model(net.op("MatMul", weights, v, transpose_a=False, transpose_b=False))
    agrees(model, net.shapes)
    assert kernels(model, net.shapes) == ["head by head"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("looks", ["turned", "turned twice", "flat", "turned and flat", "flat and turned"])
@pytest.mark.parametrize("other", ["number", "scalar", "constant", "computed", "turned alike", "its own"])
def test_elementwise_work_after_views(looks: str, other: str) -> None:
    net = Net()
    y = net.op("MatMul", net.input(2, 3, 4), net.weights(4, 6), transpose_a=False, transpose_b=False)
    z = net.input(2, 3, 6)

    def seen(x: ir.Ref) -> ir.Ref:
        if looks == "flat":
            return net.reshape(x, 2, 18)
        if looks == "flat and turned":
            return net.transpose(net.reshape(x, 2, 18), 1, 0)
        x = net.transpose(x, 0, 2, 1)
        if looks == "turned twice":
            return net.transpose(x, 2, 0, 1)
        return net.reshape(x, 2, 18) if looks == "turned and flat" else x

    wide = {
        "turned": (2, 6, 3), "turned twice": (3, 2, 6), "flat": (2, 18), "turned and flat": (2, 18),
        "flat and turned": (18, 2),
    }[looks]  # fmt: skip
    operand = {
        "number": lambda: number(net, 2),
        "scalar": lambda: net.constant(np.full((1,) * len(wide), 3, np.float32)),
        "constant": lambda: net.weights(*wide[1:]),
        "computed": lambda: net.input(*wide),
        "turned alike": lambda: seen(net.op("Sin", z)),
        "its own": lambda: None,
    }[other]()
    x = seen(y)
    out = net.op("Multiply", x, x if operand is None else operand)
    model = net.model(out, *([] if other == "turned alike" else [net.op("Sin", z)]))

    agrees(model, net.shapes)
    plan = plan_of(model, net.shapes)
    products = [b for b in plan.kernels if "matmul" in b.name]
    sunk = "multiply" in str(products[0].step.epilogue)  # type: ignore[attr-defined]
    expected = other in ("number", "scalar", "its own") or (other == "constant" and "flat" not in looks)
    assert sunk == (expected or (other, looks) == ("turned alike", "turned"))
