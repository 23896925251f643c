"""An ONNX file as a side of compare: by ONNX Runtime if installed, here by a substitute."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import irload
from models.ir import Graph
from tests.inside.nets import unary

X = np.array([-1.5, 0.5], np.float32)


def runtime(inputs: list[str], outputs: dict[str, np.ndarray], seen: dict[str, object]) -> ModuleType:
    """A module like onnxruntime whose session returns these outputs."""

    class Session:
        def __init__(self, source, options, providers):
            seen["source"] = source

        def get_inputs(self):
            return [SimpleNamespace(name=n) for n in inputs]

        def get_outputs(self):
            return [SimpleNamespace(name=n) for n in outputs]

        def run(self, wanted, feed):
            seen["feed"] = feed
            if "fails" in outputs:
                raise RuntimeError("cannot\nrun this")
            return [outputs[n] for n in wanted]

    module = ModuleType("onnxruntime")
    module.InferenceSession = Session
    module.SessionOptions = SimpleNamespace
    module.GraphOptimizationLevel = SimpleNamespace(ORT_DISABLE_ALL=0)
    return module


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(b"any")
    return tmp_path / "m.onnx"


@pytest.fixture
def stands_in(monkeypatch):
    def stand_in(inputs: list[str], outputs: dict[str, np.ndarray]) -> dict[str, object]:
        seen: dict[str, object] = {}
        monkeypatch.setitem(sys.modules, "onnxruntime", runtime(inputs, outputs, seen))
        monkeypatch.setitem(sys.modules, "onnx", None)
        return seen

    return stand_in


def model() -> irload.Model:
    g = Graph()
    x = unary(g, "Abs", g.parameter("x", "f32", [2]), "size")
    out = g.layer("Exp", [x], [("f32", [2])], name="grown", names=["y"])[0]
    g.result(out, "end")
    return irload.read_model(f'<net name="m" version="11">{g.text()}</net>'.encode(), b"")


def test_outputs_match_by_tensor_name(file, stands_in):
    seen = stands_in(["x"], {"y": np.exp(np.abs(X))})
    comparison = irload.compare(model(), file, X)
    assert comparison.passed
    assert [e.name for e in comparison.layers] == ["grown"]
    assert list(seen["feed"]) == ["x"]
    assert seen["source"] == str(file)


def test_outputs_match_by_position_if_names_differ(file, stands_in):
    stands_in(["data"], {"prob": np.exp(np.abs(X)) + 1})
    comparison = irload.compare(model(), file, X)
    assert [e.name for e in comparison.layers if not e.passed] == ["grown"]
    assert irload.compare(file, model(), X).first.name == "grown"


def test_missing_inputs_and_failures_are_reported(file, stands_in, monkeypatch, tmp_path):
    stands_in(["x"], {"fails": X})
    with pytest.raises(irload.Unsupported, match="run this"):
        irload.compare(model(), file, X)
    stands_in(["x", "more"], {"y": X})
    with pytest.raises(irload.InputInvalid, match="2 inputs, the model 1"):
        irload.compare(model(), file, X)
    with pytest.raises(irload.ReadError, match="no such file"):
        irload.compare(model(), tmp_path / "none.onnx", X)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(irload.Unsupported, match="pip install onnxruntime"):
        irload.compare(model(), file, X)


def test_onnx_runtime_returns_every_named_tensor(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Abs", ["x"], ["size"]), helper.make_node("Exp", ["size"], ["y"])]
    ends = [[helper.make_tensor_value_info(n, f32, [2])] for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", *ends)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(proto, str(tmp_path / "m.onnx"))
    comparison = irload.compare(model(), tmp_path / "m.onnx", X)
    assert comparison.passed
    assert [e.name for e in comparison.layers] == ["size", "grown"]
    (tmp_path / "no.onnx").write_bytes(b"nothing")
    with pytest.raises(irload.IRError):
        irload.compare(model(), tmp_path / "no.onnx", X)
