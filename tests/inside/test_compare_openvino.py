"""OpenVINO as a side of compare, for files that OpenVINO's `add_outputs` rejects."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.comparison.compare import INT8
from models.ir import Graph, Ref
from tests.inside.nets import saved, unary
from tests.inside.test_compare import ROWS

pytest.importorskip("openvino")


def test_tensor_names_that_are_names_of_other_layers(tmp_path):
    """Published files have names like these; adding outputs to these layers by name collides."""
    g = Graph()
    x = unary(g, "Tanh", g.parameter("x", "f32", ROWS.shape), "first")
    file = saved(tmp_path, g, unary(g, "Sin", unary(g, "Exp", x, "second"), "third"))
    text = file.read_text(encoding="utf-8")
    before, name, after = text.partition('name="first"')
    inputs, output, rest = after.partition("<output>")
    rest = rest.replace("<port ", '<port names="second" ', 1)
    file.write_text(before + name + inputs + output + rest, encoding="utf-8")
    comparison = irload.compare("openvino", file, ROWS)
    assert comparison.passed
    assert (comparison.unmatched, len(comparison.outputs)) == (0, 1)


def test_int8_that_saturates_is_noted(tmp_path):
    """Products of 255 · 127 exceed i16 in pairs, which OpenVINO adds in i16 on processors without VNNI."""
    g = Graph()

    def levels(of: Ref, low: float, high: float) -> Ref:
        ends = [g.constant(np.float32(v)) for v in (low, high, low, high)]
        attributes = {"levels": 256 if low == 0 else 255, "auto_broadcast": "numpy"}
        return g.layer("FakeQuantize", [of, *ends], [("f32", of.dims)], attributes=attributes)[0]

    data = levels(g.parameter("x", "f32", [1, 64, 8, 8]), 0, 255)
    weights = levels(g.constant(np.full((32, 64, 1, 1), 127, np.float32)), -127, 127)
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
    net = saved(
        tmp_path,
        g,
        g.layer("Convolution", [data, weights], [("f32", [1, 32, 8, 8])], name="conv", attributes=window)[0],
    )
    comparison = irload.compare("openvino", net, np.full((1, 64, 8, 8), 255, np.float32))
    assert comparison.passed or comparison.notes == [INT8]
    assert irload.compare("fast", net, np.full((1, 64, 8, 8), 255, np.float32)).notes == []
