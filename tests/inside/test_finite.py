"""check_finite names the layer that computes NaN or an infinity: planted in graphs, in bodies and in f16."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from models.ir import Graph
from tests.inside.nets import branched, iterated, looped, plain, unary, with_constant

ONES = np.ones((3, 2), np.float32)


def logarithm_of_negatives(g, x):
    return unary(g, "Relu", unary(g, "Log", with_constant(g, "Subtract", x, 2.5, "shift"), "planted"), "after")


def division_by_zero(g, x):
    zero = with_constant(g, "Multiply", x, 0.0, "zero")
    return unary(g, "Tanh", with_constant(g, "Power", zero, -1.0, "planted"), "after")


def root_of_negatives(g, x):
    return unary(g, "Relu", unary(g, "Sqrt", unary(g, "Negative", x, "negated"), "planted"), "after")


def overflow(g, x):
    return unary(
        g, "Tanh", with_constant(g, "Multiply", with_constant(g, "Add", x, 300, "big"), 300, "planted"), "after"
    )


def exponential(g, x):
    return unary(g, "Sigmoid", unary(g, "Exp", with_constant(g, "Multiply", x, 90, "big"), "planted"), "after")


def late(g, x):
    """Finite until the third iteration of a loop: 1, 16, 4096 (by ·256), then beyond f16."""
    return with_constant(g, "Multiply", x, 64, "planted")


PLANTED = {
    "nan": (plain, logarithm_of_negatives, "f32", "nan", "planted"),
    "division": (plain, division_by_zero, "f32", "infinity", "planted"),
    "root in f16": (plain, root_of_negatives, "f16", "nan", "planted"),
    "overflow of f16": (plain, overflow, "f16", "overflow", "planted"),
    "exponential": (plain, exponential, "f32", "infinity", "planted"),
    "nan in a loop": (looped, logarithm_of_negatives, "f32", "nan", "loop/body[0]/planted"),
    "late in a loop, f16": (looped, late, "f16", "overflow", "loop/body[2]/planted"),
    "overflow in an iterator, f16": (iterated, overflow, "f16", "overflow", "ti/body[0]/planted"),
    "nan in a branch": (branched, root_of_negatives, "f32", "nan", "if/then_body/planted"),
    "overflow in a branch, f16": (branched, overflow, "f16", "overflow", "if/then_body/planted"),
}


@pytest.mark.parametrize("case", PLANTED)
@pytest.mark.parametrize("optimize", [True, False])
def test_planted_faults_are_reported(case, optimize):
    make, build, element, kind, name = PLANTED[case]
    compiled = irload.compile_model(make(build, element, ONES.shape), optimize=optimize)
    inputs = {"x": ONES} | ({"condition": np.array([True])} if make is branched else {})
    finiteness = irload.check_finite(compiled, inputs)
    assert (finiteness.first.kind, finiteness.first.name) == (kind, name)
    assert finiteness.first.made_here
    assert finiteness.first.inputs[0].shape
    assert not finiteness.constants


def test_only_the_wrong_row_is_named():
    compiled = irload.compile_model(iterated(logarithm_of_negatives, "f32", ONES.shape))
    rows = np.array([[4, 4], [4, 4], [4, 1]], np.float32)
    finiteness = irload.check_finite(compiled, rows)
    assert finiteness.first.name == "ti/body[2]/planted"
    assert (finiteness.first.output.nan, finiteness.first.inputs[0].min) == (1, -1.5)


@pytest.mark.parametrize("make", [plain, looped, iterated])
def test_a_constant_is_named(make):
    bad = np.array([1, np.nan], np.float32)
    compiled = irload.compile_model(make(lambda g, x: with_constant(g, "Add", x, bad, "sum"), "f32", ONES.shape))
    finiteness = irload.check_finite(compiled, ONES)
    assert [c.name for c in finiteness.constants] == ["sum_c"]
    assert finiteness.first.name.endswith("sum")
    assert not finiteness.first.made_here
    assert not finiteness.passed


def test_nan_is_detected_after_intended_infinities():
    def masked(g: Graph, x):
        low = with_constant(g, "Add", x, -np.inf, "mask")
        return unary(g, "Relu", with_constant(g, "Multiply", low, 0.0, "lost"), "after")

    finiteness = irload.check_finite(irload.compile_model(plain(masked, "f32", ONES.shape)), ONES)
    assert [(e.kind, e.name) for e in finiteness.layers] == [("infinity", "mask"), ("nan", "lost")]


@pytest.mark.parametrize(("element", "scale"), [("f32", 1e-39), ("f16", 2e-5)])
def test_subnormals_are_detected_on_request(element, scale):
    model = plain(lambda g, x: with_constant(g, "Multiply", x, 1, "same"), element, ONES.shape)
    compiled = irload.compile_model(model)
    small = (ONES * scale).astype(element.replace("f", "float"))
    assert irload.check_finite(compiled, small).passed
    finiteness = irload.check_finite(compiled, small, subnormals=True)
    assert (finiteness.first.kind, finiteness.first.output.subnormal) == ("subnormal", 6)


def test_attributes_and_line_are_reported():
    def chained(g: Graph, x):
        return g.layer(
            "Elu", [with_constant(g, "Multiply", x, np.inf, "big")], [("f32", [3, 2])], attributes={"alpha": 2.5}
        )[0]

    finiteness = irload.check_finite(irload.compile_model(plain(chained, "f32", ONES.shape)), -ONES * np.nan)
    assert finiteness.first.name == "big"
    assert finiteness.first.where.line is not None
    assert finiteness.first.attributes["auto_broadcast"] == "numpy"


def test_attributes_are_written_as_in_files():
    def pooled(g: Graph, x):
        window = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "exclude-pad": "false"}
        return g.layer("AvgPool", [x], [("f32", [1, 1, 2, 1])], attributes=window)[0]

    image = np.full((1, 1, 3, 2), np.inf, np.float32)
    (layer,) = irload.check_finite(irload.compile_model(plain(pooled, "f32", image.shape)), image).layers
    assert (layer.attributes["kernel"], layer.attributes["exclude_pad"]) == ("2,2", "false")
