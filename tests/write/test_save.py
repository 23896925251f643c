"""save_model: the saved file contains the whole model, for irload and for the real runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core import element as et
from irload.core.packing import pack
from irload.core.shape import Shape
from irload.read import read_graph
from tests.harness.body import Body
from tests.harness.ir import layer_text
from tests.harness.runtime import core
from tests.resave import EXACT

MODELS = sorted(p.parent for p in (Path(__file__).parents[2] / "models").glob("*/model.xml"))


def net(layers: str, edges: str = "", rest: str = "", version: int = 11) -> bytes:
    return f'<net name="n" version="{version}"><layers>{layers}</layers><edges>{edges}</edges>{rest}</net>'.encode()


def constant(id: int, element: et.ElementType, shape: str, offset: int, size: int) -> str:
    data = f'<data element_type="{element}" shape="{shape}" offset="{offset}" size="{size}"/>'
    return layer_text(id, f"c{id}", "Const", "opset1", data, 0, [(element.precision, ())])


def parameter(id: int, name: str, shape: str, element: str = "f32", precision: str = "FP32", port: str = "") -> str:
    ports = f'<output><port id="0" precision="{precision}">{port}</port></output>'
    data = f'<data shape="{shape}" element_type="{element}"/>'
    return f'<layer id="{id}" name="{name}" type="Parameter" version="opset1">{data}{ports}</layer>'


def result(id: int, more: str = "") -> str:
    ports = '<input><port id="0" precision="FP32"/></input>'
    return f'<layer id="{id}" name="r{id}" type="Result" version="opset1" {more}>{ports}</layer>'


def edge(start: int, end: int, port: int = 0, from_port: int = 0) -> str:
    return f'<edge from-layer="{start}" from-port="{from_port}" to-layer="{end}" to-port="{port}"/>'


def saved(tmp_path: Path, xml: bytes, weights: bytes | None = None, **options: bool) -> irload.Model:
    """The model, read, saved, and read again."""
    irload.save_model(irload.read_model(xml, weights), tmp_path / "m.xml", **options)
    return irload.read_model(tmp_path / "m.xml")


@pytest.mark.parametrize("folder", MODELS, ids=lambda f: f.name)
def test_models_compute_the_same(folder, tmp_path):
    irload.save_model(irload.read_model(folder / "model.xml"), tmp_path / "m.xml")
    inputs = [np.load(p) for p in sorted(folder.glob("input_*.npy"))]
    first = irload.compile_model(folder / "model.xml")(inputs)
    again = irload.compile_model(tmp_path / "m.xml")(inputs)
    assert [p.names for p in again] == [p.names for p in first]
    assert all(np.array_equal(a, b) for a, b in zip(again.values(), first.values(), strict=True))
    if "ngraph" in folder.name or "onednn" in folder.name:
        return  # namespaces that OpenVINO does not support
    theirs = core().compile_model(core().read_model(tmp_path / "m.xml"), "CPU", EXACT)(inputs)
    for a, b in zip(first.values(), theirs.values(), strict=True):
        assert np.allclose(a, b, atol=1e-5)


def test_state_is_kept_from_step_to_step(tmp_path):
    irload.save_model(irload.read_model(MODELS[0].parent / "state" / "model.xml"), tmp_path / "m.xml")
    ours = irload.compile_model(tmp_path / "m.xml").create_infer_request()
    theirs = core().compile_model(core().read_model(tmp_path / "m.xml"), "CPU", EXACT).create_infer_request()
    step = np.array([[1, 2, 3]], np.float32)
    for k in range(1, 4):
        assert ours.infer(step)[0].tolist() == theirs.infer([step])[0].tolist() == [[k, 2 * k, 3 * k]]


@pytest.mark.parametrize("element", [e for e in et.ELEMENTS if e is not et.dynamic], ids=str)
def test_constants_of_every_element_type(element, tmp_path):
    rng = np.random.default_rng(1)
    if element is et.string:
        raw = pack(np.array(["a", "", "ü,\n"], object), element)
        count = 3
    else:
        count = 19
        raw = rng.integers(0, 2 if element is et.boolean else 64, element.bytes_for(count), np.uint8).tobytes()
    xml = net(constant(0, element, str(count), 0, len(raw)) + result(1), edge(0, 1))
    before, after = irload.read_model(xml, raw), saved(tmp_path, xml, raw)
    values = [m.results[0].inputs[0].node.op.attributes["data"]() for m in (before, after)]
    assert values[0].tobytes() == values[1].tobytes() or values[0].tolist() == values[1].tolist()
    assert after.outputs[0].element_type is element
    (theirs,) = [op for op in core().read_model(tmp_path / "m.xml").get_ops() if op.get_type_name() == "Constant"]
    assert theirs.get_element_type().get_type_name() == element.name


def test_equal_bytes_share_their_place_and_empty_constants_take_one_byte(tmp_path):
    zeros = bytes(16)
    layers = [constant(0, et.f32, "4", 0, 16), constant(1, et.i64, "2", 16, 16), constant(2, et.f32, "0,3", 0, 1)]
    edges = "".join(edge(k, 3 + k) for k in range(3))
    model = saved(tmp_path, net("".join(layers) + result(3) + result(4) + result(5), edges), zeros * 2)
    nodes = [r.inputs[0].node.op.attributes for r in model.results]
    assert nodes[0]["offset"] == nodes[1]["offset"]
    assert (nodes[2]["size"], str(nodes[2]["shape"])) == (1, "[0,3]")
    assert (tmp_path / "m.bin").stat().st_size < 32
    assert core().read_model(tmp_path / "m.xml").outputs[2].partial_shape == ov.PartialShape([0, 3])


@pytest.mark.parametrize(
    ("text", "shape"),
    [("1,?,2..8,..5,3..", "[1,?,2..8,..5,3..]"), ("...", "[...]"), ("", "[]"), ("-1,0", "[?,0]")],
)
def test_shapes_of_parameters(text, shape, tmp_path):
    model = saved(tmp_path, net(parameter(0, "x", text) + result(1), edge(0, 1)))
    assert model.inputs[0].partial_shape == Shape.parse(shape)
    theirs = core().read_model(tmp_path / "m.xml").inputs[0].partial_shape
    assert str(theirs) == str(
        core().read_model(net(parameter(0, "x", text) + result(1), edge(0, 1))).inputs[0].partial_shape
    )


def test_a_parameter_of_unknown_type(tmp_path):
    xml = net(parameter(0, "x", "2", "dynamic", "UNSPECIFIED") + result(1), edge(0, 1))
    assert saved(tmp_path, xml).inputs[0].element_type is et.dynamic
    assert core().read_model(tmp_path / "m.xml").inputs[0].element_type.is_dynamic()


def test_names(tmp_path):
    odd = "a &amp; &lt;b&gt; &quot;q&quot;&#10;&#9;ü"
    port = parameter(0, odd, "2").replace('precision="FP32"', r'precision="FP32" names="t\,1,t2, blank"')
    xml = net(port + result(1, r'output_names="y\,1,z"'), edge(0, 1))
    model = saved(tmp_path, xml)
    theirs = core().read_model(tmp_path / "m.xml")
    assert model.parameters[0].name == theirs.get_parameters()[0].get_friendly_name() == 'a & <b> "q"\n\tü'
    assert model.inputs[0].names == {"t,1", "t2", " blank"}
    assert model.outputs[0].names == {"y,1", "z"}
    assert theirs.outputs[0].names == core().read_model(xml).outputs[0].names


def test_an_output_may_be_nameless(tmp_path):
    port = parameter(0, "x", "2").replace('precision="FP32"', 'precision="FP32" names="t"')
    model = saved(tmp_path, net(port + result(1, 'output_names=""'), edge(0, 1)))
    assert model.results[0].output_names == frozenset()


def test_runtime_information(tmp_path):
    layout = '<rt_info><attribute name="layout" version="0" layout="[N,C]"/></rt_info>'
    own = (
        '<rt_info><attribute name="fused_names" version="0" value="a,b"/>'
        '<user_data name="mine" value="1"><user_data name="inner" value="2"/></user_data></rt_info>'
    )
    layer = parameter(0, "x", "2,3", port=f"<dim>2</dim><dim>3</dim>{layout}").replace("<output>", f"{own}<output>")
    rest = '<rt_info><a><b value="1"/></a><info name="odd key" value="2"/><info name="{x}y" value="3"/></rt_info>'
    xml = net(layer + result(1), edge(0, 1), rest)
    before, after = irload.read_model(xml), saved(tmp_path, xml)
    assert after.rt_info == before.rt_info == {"a": {"b": "1"}, "odd key": "2", "{x}y": "3"}
    assert after.parameters[0].rt_info == before.parameters[0].rt_info != []
    assert after.parameters[0].outputs[0].rt_info == before.parameters[0].outputs[0].rt_info != []
    theirs = core().read_model(tmp_path / "m.xml")
    assert ov.layout_helpers.get_layout(theirs.inputs[0]) == ov.Layout("[N,C]")
    assert theirs.get_rt_info(["a", "b"]).astype(str) == "1"


def test_unknown_operations_stay_as_they_are(tmp_path):
    data = '<data alpha="1.50" list="1, 2" odd-name="x&amp;y"/>'
    layer = layer_text(1, "u", "Strange", "my_set", data, 1, [("I32", (2, -1)), ("FP16", ())])
    model = saved(tmp_path, net(parameter(0, "x", "2") + layer + result(2), edge(0, 1) + edge(1, 2, from_port=2)))
    (node,) = [n for n in model.nodes if n.type == "Strange"]
    assert (node.name, node.version, node.text) == ("u", "my_set", {"alpha": "1.50", "list": "1, 2", "odd-name": "x&y"})
    assert [str(o.declared) for o in node.outputs] == ["i32[2,?]", "f16[...]"]
    assert model.results[0].inputs[0] is node.outputs[1]


def test_bodies_of_unknown_operations_are_not_lost_in_silence(tmp_path):
    tail = "<body><layers/><edges/></body>"
    layer = layer_text(1, "u", "Strange", "my_set", "", 1, [("FP32", (2,))], tail)
    xml = net(parameter(0, "x", "2") + layer + result(2), edge(0, 1) + edge(1, 2, from_port=1))
    with pytest.raises(irload.Unsupported, match=r"'u' \(id 1\).*<body>"):
        irload.save_model(irload.read_model(xml), tmp_path / "m.xml")
    assert not list(tmp_path.iterdir())


def test_ports_are_written_in_order_with_new_ids(tmp_path):
    body = Body(bytearray())
    x = body.parameter(et.f32, "4,6")
    split = body.op("Split", x, body.constant(np.int64(0)), num_splits=2)
    body.result(split)
    xml, weights = body.model()
    xml = xml.replace(b'<port id="2" precision="FP32"></port>', b'<port id="7" precision="FP32"></port>' * 1)
    xml = xml.replace(b'from-layer="2" from-port="2"', b'from-layer="2" from-port="7"')
    model = saved(tmp_path, xml, weights)
    assert [str(t.type) for t in model.nodes[2].outputs] == ["f32[2,6]"]
    assert b'from-port="2"' in (tmp_path / "m.xml").read_bytes()


def test_dead_layers_are_left_out_but_inputs_stay(tmp_path):
    layers = parameter(0, "x", "2") + parameter(1, "unused", "3") + constant(2, et.f32, "1", 0, 4) + result(3)
    irload.save_model(irload.read_model(net(layers, edge(0, 3)), bytes(4)), tmp_path / "m.xml")
    model = irload.read_model(tmp_path / "m.xml")
    assert [n.name for n in model.nodes] == ["x", "unused", "r3"]
    assert (tmp_path / "m.bin").stat().st_size == 0


def test_version_10_becomes_11(tmp_path):
    means = (
        '<pre-process reference-layer-name="x"><channel id="0"><mean value="1.5"/></channel>'
        '<channel id="1"><mean value="2"/></channel></pre-process>'
    )
    relu = layer_text(1, "act", "ReLU", "opset5", "", 1, [("FP32", (1, 2, 1, 1))])
    xml = net(parameter(0, "x", "1,2,1,1") + relu + result(2), edge(0, 1) + edge(1, 2, from_port=1), means, 10)
    model = saved(tmp_path, xml)
    x = np.array([2, 5], np.float32).reshape(1, 2, 1, 1)
    assert model.ir_version == 11
    assert irload.compile_model(model)(x)[0].ravel().tolist() == [0.5, 3.0]
    theirs = core().compile_model(core().read_model(tmp_path / "m.xml"), "CPU")
    assert theirs(x)[0].ravel().tolist() == [0.5, 3.0]
    assert theirs.outputs[0].names == model.outputs[0].names == {"act"}


def test_a_model_may_be_saved_over_itself(tmp_path):
    for source in ("m.xml", "m.bin"):
        (tmp_path / source).write_bytes((MODELS[2] / f"model{source[1:]}").read_bytes())
    model = irload.read_model(tmp_path / "m.xml")
    irload.save_model(model, tmp_path / "m.xml")
    irload.save_model(irload.read_model(tmp_path / "m.xml"), tmp_path / "n.xml")
    assert (tmp_path / "m.xml").read_bytes() == (tmp_path / "n.xml").read_bytes()
    assert (tmp_path / "m.bin").read_bytes() == (tmp_path / "n.bin").read_bytes()


@pytest.mark.parametrize("name", ["m.bin", "m", "m.xml.gz"])
def test_other_endings_are_refused(name, tmp_path):
    with pytest.raises(irload.InputInvalid, match=r"\.xml"):
        irload.save_model(irload.read_model(net(parameter(0, "x", "2") + result(1), edge(0, 1))), tmp_path / name)


def test_without_weights_nothing_is_written(tmp_path):
    model = irload.read_model(net(parameter(0, "x", "2") + result(1), edge(0, 1)))
    irload.save_model(model, tmp_path / "m.xml")
    before = (tmp_path / "m.xml").read_bytes()
    bare = net(constant(0, et.f32, "4", 0, 16) + result(1), edge(0, 1))
    with pytest.raises(irload.ReadError, match=r"no \.bin file"):
        irload.save_model(read_graph(bare), tmp_path / "m.xml")
    assert (tmp_path / "m.xml").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.bin", "m.xml"]


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        irload.save_model(
            irload.read_model(net(parameter(0, "x", "2") + result(1), edge(0, 1))), tmp_path / "nowhere" / "m.xml"
        )


def test_a_variable_that_is_written_only_keeps_its_read_value(tmp_path: Path) -> None:
    body = Body(bytearray())
    x = body.parameter(et.f32, "1,3")
    attributes = {"variable_id": "v", "variable_type": "f32", "variable_shape": "1,3"}
    start = body.op("Negative", body.constant(np.zeros((1, 3), np.float32)))
    body.op("ReadValue", start, version="opset6", **attributes)
    body.op("Assign", x, version="opset6", variable_id="v")
    body.result(x)
    file = tmp_path / "model.xml"
    irload.save_model(irload.read_model(*body.model()), file)
    saved = irload.read_model(file)
    assert {n.type for n in saved.nodes} >= {"ReadValue", "Assign", "Const"}
    data = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(irload.compile_model(saved)(data)[0], data)


def test_a_path_is_not_a_model(tmp_path: Path) -> None:
    path: Any = MODELS[0] / "model.xml"
    for change in (lambda: irload.save_model(path, tmp_path / "m.xml"), lambda: irload.edit.fold(path)):
        with pytest.raises(TypeError, match=r"expected a Model, found .*Path; irload.read_model reads a file"):
            change()
