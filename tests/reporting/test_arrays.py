"""Arrays in a report: small constants, and requested tensors."""

from __future__ import annotations

from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest

import irload
from models.ir import Graph
from tests.cli.conftest import MODELS
from tests.inside.nets import model, unary
from tests.reporting.test_report import DIGITS, SEVEN, entry


def array(npy: str) -> np.ndarray:
    return np.load(BytesIO(b64decode(npy)))


def test_small_constants_are_held():
    page = irload.report(DIGITS)
    nodes = {n.name: n for n in irload.read_model(DIGITS).nodes if n.type == "Const"}
    sizes = {}
    for data in page.data["layers"]:
        if "constant" in data:
            sizes[data["constant"]["bytes"]] = "npy" in data["constant"]
            if "npy" in data["constant"]:
                values = nodes[data["name"]].op.attributes["data"]()
                np.testing.assert_array_equal(array(data["constant"]["npy"]), values)
    assert sizes[4 * 16]
    assert not sizes[max(sizes)]  # 18 KB
    assert not any("npy" in e.get("constant", {}) for e in irload.report(DIGITS, constants=False).data["layers"])


def test_tensors_are_held():
    page = irload.report(DIGITS, SEVEN, tensors=["relu0", "conv1/*"])
    wanted = dict(irload.compile_model(DIGITS).intermediates(SEVEN, "relu0"))
    ((name, npy),) = entry(page, "relu0")["arrays"]
    assert name == "relu0"
    np.testing.assert_array_equal(array(npy), wanted["relu0"])
    held = [e["name"] for e in page.data["layers"] if "arrays" in e]
    assert held == ["relu0", "conv1/bias"]
    assert "npy" in entry(page, "conv1/weights")["constant"]


def test_tensors_of_iterations_are_held():
    loaded = irload.read_model(MODELS / "loop" / "model.xml")
    inputs = [np.load(MODELS / "loop" / f"input_{k}.npy") for k in (0, 1)]
    names = [name for name, _ in entry(irload.report(loaded, inputs, tensors="doubled"), "doubled")["arrays"]]
    assert names == [f"doubling/body[{k}]/doubled" for k in range(len(names))]
    assert len(names) > 1
    one = irload.report(loaded, inputs, tensors="doubling/body[[]1]/doubled")
    assert len(entry(one, "doubled")["arrays"]) == 1


def test_tensors_that_are_not_there_or_too_large():
    with pytest.raises(irload.InputInvalid, match="no layer that ran matches 'nope'"):
        irload.report(DIGITS, SEVEN, tensors="nope")
    g = Graph()
    x = g.parameter("x", "f32", [5000, 5000])
    with pytest.raises(irload.LimitExceeded, match="64 MB"):
        irload.report(model(g, unary(g, "Abs", x, "abs")), [np.zeros((5000, 5000), np.float32)], tensors="abs")
