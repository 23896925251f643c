"""The inputs and outputs of an IR v10 model, compared with OpenVINO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import irload
from models.ir import Graph
from tests.harness.runtime import core

TYPES = ("f16", "f32", "f64", "boolean", "u8", "i8", "i32", "u32", "i64", "u64")


def converting(version: int, source: str, target: str) -> bytes:
    """A model that converts an input of one type to an output of another."""
    graph = Graph()
    data = graph.parameter("x", source, [2, 3])
    y = graph.layer("Convert", [data], [(target, [2, 3])], name="y", attributes={"destination_type": target})[0]
    graph.result(y)
    return f'<net name="m" version="{version}">{graph.text()}</net>'.encode()


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("element", TYPES)
def test_types_and_names_of_inputs_and_outputs_are_the_runtimes(version: int, element: str):
    text = converting(version, element, element)
    theirs = core().read_model(text, ov.Tensor(np.zeros(1, np.uint8)))
    ours = irload.read_model(text, b"")
    for mine, other in zip((*ours.inputs, *ours.outputs), (*theirs.inputs, *theirs.outputs), strict=True):
        assert mine.element_type.name == other.element_type.get_type_name()
        if version == 10:
            assert set(mine.names) == set(other.names)


def test_the_script_that_feeds_f32_reads_the_runtimes_outputs():
    text = converting(10, "f16", "i64")
    x = np.array([[1.5, -2.25, 3], [4, 5, 6]], np.float32)
    theirs = core().compile_model(core().read_model(text, ov.Tensor(np.zeros(1, np.uint8))), "CPU")(x)["y"]
    for optimize in (False, True):
        mine = irload.compile_model(irload.read_model(text, b""), optimize=optimize)(x)["y"]
        assert mine.dtype == theirs.dtype == np.int32
        assert mine.tolist() == theirs.tolist()


def test_a_boolean_output_is_shown_as_f32():
    result = irload.compile_model(irload.read_model(converting(10, "f32", "boolean"), b""))(np.eye(2, 3, k=1))[0]
    assert result.dtype == np.float32
    assert result.tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(("source", "target"), [("f16", "f16"), ("f32", "i64"), ("i64", "boolean")])
def test_saved_as_v11_it_shows_the_same(source: str, target: str, tmp_path: Path):
    model = irload.read_model(converting(10, source, target), b"")
    irload.save_model(model, tmp_path / "model.xml")
    again = irload.read_model(tmp_path / "model.xml")
    theirs = core().read_model(tmp_path / "model.xml")
    before = [(p.any_name, p.element_type) for p in (*model.inputs, *model.outputs)]
    assert [(p.any_name, p.element_type) for p in (*again.inputs, *again.outputs)] == before
    assert [i.element_type.get_type_name() for i in (*theirs.inputs, *theirs.outputs)] == [e.name for _, e in before]
    x = np.arange(6).reshape(2, 3)
    assert irload.compile_model(again)(x)[0].tolist() == irload.compile_model(model)(x)[0].tolist()
    assert model.parameters[0].op.attributes["element_type"].name == source  # the saved model is unchanged


def test_inference_still_compares_with_declarations(tmp_path: Path):
    file = tmp_path / "model.xml"
    file.write_bytes(converting(10, "f16", "f16"))
    assert not [f for f in irload.check(file).findings if f.severity == "error"]


@pytest.mark.parametrize("size", [8, "?"])
def test_f16_with_f32_ports_is_not_rounded(size: int | str):
    """Neither OpenVINO nor a plan rounds inputs and outputs in v10. In v11 the ports of the model are f16."""
    x = (np.linspace(0.1, 0.9, 8, dtype=np.float32) + np.float32(2**-13))[None]
    for version, dtype in ((10, np.float32), (11, np.float16)):
        graph = Graph()
        data = graph.parameter("x", "f16", [1, size])
        graph.result(graph.layer("Tanh", [data], [("f16", [1, size])])[0])
        text = f'<net name="m" version="{version}">{graph.text()}</net>'.encode()
        theirs = core().compile_model(core().read_model(text, ov.Tensor(np.zeros(1, np.uint8))), "CPU")
        output = irload.compile_model(irload.read_model(text, b""))([x])[0]
        assert output.dtype == dtype
        np.testing.assert_allclose(output, theirs([x])[0], rtol=1e-6 if version == 10 else 0)
        plain = irload.compile_model(irload.read_model(text, b""), optimize=False)([x])[0]
        assert plain.tolist() == np.tanh(x.astype(np.float16).astype(np.float32)).astype(np.float16).tolist(), (
            "which rounds each layer"
        )
