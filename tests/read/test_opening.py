"""Edges, files and digests: parts of a net that a fault does not affect, and the files that are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from irload.errors import ReadError, ShapeMismatch
from irload.read import read_graph
from irload.safety.limits import DEFAULT
from irload.safety.opened import open_model
from models import ir
from tests.read.texts import BASE, EDGES, PARAMETER, RELU, RESULT, changed, const_net, faults, net

# -- edges -------------------------------------------------------------------------------------------------------------


def test_layers_after_a_duplicate_id_are_read() -> None:
    model, errors = faults(net(PARAMETER + RELU + RELU.replace("relu", "twin") + RESULT))
    assert len(errors) == 1
    assert [n.name for n in model.nodes] == ["in", "relu", "out"]


def test_ports_that_share_an_id() -> None:
    """An edge leads to the first of them."""
    text = changed(
        '<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>', '<input><port id="0"/><port id="0"/>'
    )
    _, errors = faults(text)
    assert errors[0].endswith("input port 0 is fed by no edge")


def test_unfed_ports_are_listed_up_to_eight() -> None:
    ports = "".join(f'<port id="{k}"/>' for k in range(10))
    text = changed('<input><port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port>', f"<input>{ports}")
    _, errors = faults(text)
    assert errors[0].endswith("input port 1, 2, 3, 4, 5, 6, 7, 8 is fed by no edge")


@pytest.mark.parametrize(
    ("fault", "unfed"), [('to-port="9"', 1), ('from-port="9"', 0), ('to-layer="9"', 1), ('from-layer="9"', 0)]
)
def test_a_faulty_edge_does_not_affect_the_edges_after_it(fault: str, unfed: int) -> None:
    key = fault.split("=")[0]
    first, second = (edge + "/>" for edge in EDGES.split("/>")[:2])
    bad = " ".join(fault if part.startswith(key) else part for part in first[:-2].split()) + "/>"
    model, errors = faults(net(edges=bad + second))
    assert len(errors) == 1 + unfed
    assert "9" in errors[0]
    assert all(text.endswith("input port 0 is fed by no edge") for text in errors[1:])
    assert [i.node.name for i in next(n for n in model.nodes if n.name == "out").inputs] == ["relu"]


def test_reachable_layers() -> None:
    dead = RELU.replace('id="1" name="relu"', 'id="5" name="dead"')
    unused = PARAMETER.replace('id="0" name="in"', 'id="6" name="unused"')
    model = read_graph(
        net(
            PARAMETER + RELU + dead + unused + RESULT,
            EDGES + EDGES.split("/>")[0].replace('to-layer="1"', 'to-layer="5"') + "/>",
        ).encode()
    )
    assert {n.name: n.reachable for n in model.nodes} == {
        "in": True,
        "relu": True,
        "dead": False,
        "unused": True,
        "out": True,
    }


@pytest.mark.parametrize("columns", [3, 4])
def test_a_variable_that_is_written_before_it_is_read_in_the_file(columns: int) -> None:
    """No edge leads from the Assign to the ReadValue, whose shape the Assign must have."""
    graph = ir.Graph()
    x, y = graph.parameter("x", "f32", (1, 3)), graph.parameter("y", "f32", (1, columns))
    graph.layer("Assign", [y], [("f32", (1, columns))], version="opset6", attributes={"variable_id": "v"})
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1,3"}
    graph.result(graph.layer("ReadValue", [x], [("f32", (1, 3))], version="opset6", attributes=variable)[0])
    text = f'<net name="n" version="11">{graph.text()}</net>'.encode()
    if columns == 3:
        assert irload.read_model(text).outputs[0].shape == (1, 3)
    else:
        with pytest.raises(ShapeMismatch, match=r"'v' has shape \[1,3\], the value to store \[1,4\]"):
            irload.read_model(text)


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_bin_file_given_as_the_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(range(1, 50)))
    with pytest.raises(ReadError, match=r"A \.bin holds the weights; the model is an \.xml"):
        irload.read_model(tmp_path / "model.bin")
    (tmp_path / "model.xml").write_text(BASE)
    with pytest.raises(ReadError, match=r"the model is .*model\.xml$"):
        irload.read_model(tmp_path / "model.bin")
    (tmp_path / "model.bin").write_text(changed('version="11"', 'version="12"'))
    with pytest.raises(ReadError, match=r"irload supports$"):
        irload.read_model(tmp_path / "model.bin")
    (tmp_path / "other.dat").write_bytes(bytes(range(1, 50)))
    with pytest.raises(ReadError) as caught:
        irload.read_model(tmp_path / "other.dat")
    assert "A .bin holds" not in str(caught.value)


def test_digests_are_computed_on_request() -> None:
    assert read_graph(BASE.encode()).digests is None
    assert read_graph(BASE.encode(), hashed=True).digests is not None


def test_reading_opened_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both keep the contents that they had when they were opened; other weights can be given."""
    pytest.importorskip("xxhash")
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "cache"))
    text = const_net('element_type="f32" shape="2" offset="0" size="8"')
    path = tmp_path / "model.xml"
    path.write_text(text)
    path.with_suffix(".bin").write_bytes(np.array([1, 2], np.float32).tobytes())
    files = open_model(path, DEFAULT, lambda xml: 100)
    assert files is not None
    path.rename(tmp_path / "moved.xml")
    path.with_suffix(".bin").rename(tmp_path / "moved.bin")
    path.with_suffix(".bin").write_bytes(bytes(8))

    def values(weights: bytes | None) -> list[float]:
        return irload.compile_model(irload.infer(read_graph(path, weights, files=files)))()[0].tolist()

    assert values(None) == [1, 2]
    assert values(np.array([3, 4], np.float32).tobytes()) == [3, 4]
    files.close()
    (tmp_path / "moved.bin").unlink()
    without = open_model(tmp_path / "moved.xml", DEFAULT, lambda xml: 100)
    assert without is not None
    model = read_graph(tmp_path / "moved.xml", files=without)
    assert (model.weights_file, model.file) == (None, str(tmp_path / "moved.xml"))
    with pytest.raises(ReadError, match=r"there is no moved\.bin beside the model"):
        irload.compile_model(irload.infer(model))()
