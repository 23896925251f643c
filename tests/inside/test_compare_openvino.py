"""OpenVINO as a side of compare, for files that OpenVINO's `add_outputs` rejects."""

from __future__ import annotations

import pytest

import irload
from models.ir import Graph
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
    found = irload.compare("openvino", file, ROWS)
    assert found.passed
    assert (found.unmatched, len(found.outputs)) == (0, 1)
