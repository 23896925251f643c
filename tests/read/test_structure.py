"""Graph faults, metadata and pre-process: all faults are reported with their lines, and reading continues."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import irload
from irload.errors import IRError
from irload.read import read_graph
from irload.read.names import join_names, split_names
from irload.read.xml import read_xml
from tests.harness.growth import LINEAR, growth
from tests.harness.runtime import core
from tests.read.texts import BASE, EDGES, PARAMETER, RELU, RESULT, changed, faults, net, runtime_model

FAULTS: dict[str, tuple[str, list[str]]] = {
    "a duplicate id": (
        net(PARAMETER + RELU + RELU.replace("relu", "twin") + RESULT),
        ["'twin' (id 1): has id 1, which"],
    ),
    "an unknown layer": (
        changed('from-layer="0"', 'from-layer="77"'),
        ["no layer 77"],
    ),
    "an unknown output port": (changed('from-port="1"', 'from-port="5"'), ["'relu' has no output port 5"]),
    "an unknown input port": (
        changed('to-port="0"', 'to-port="5"'),
        ["'relu' has no input port 5", "'relu' (id 1): input port 0 is fed by no edge"],
    ),
    "a port fed twice": (net(edges=EDGES + EDGES.split("/>")[0] + "/>"), ["'relu' is already fed"]),
    "a cycle": (
        net(
            PARAMETER + RELU + RELU.replace('id="1" name="relu"', 'id="3" name="back"') + RESULT,
            EDGES.replace('from-layer="0" from-port="0"', 'from-layer="3" from-port="1"')
            + '<edge from-layer="1" from-port="1" to-layer="3" to-port="0"/>',
        ),
        ["cycle"],
    ),
    "a bad attribute": (
        changed('element_type="f32"', 'element_type="float"'),
        ["Parameter 'in' (id 0): attribute element_type: 'float'"],
    ),
    "a bad precision": (
        changed('<port id="1" precision="FP32"', '<port id="1" precision="fp32"'),
        ["ReLU 'relu' (id 1): 'fp32' is not a precision"],
    ),
    "a Result without edge": (
        net(edges=EDGES.split("/>")[0] + "/>"),
        ["Result 'out' (id 2): input port 0 is fed by no"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS)
def test_faults_name_their_location(text: str, expected: list[str]) -> None:
    _, errors = faults(text)
    for words in expected:
        assert any(words in fault for fault in errors), errors
    with pytest.raises(IRError):
        read_graph(text.encode())


def test_all_faults_are_reported_at_once() -> None:
    text = changed('element_type="f32"', 'element_type="float"')
    text = changed("<dim>3</dim></port></input>", "<dim>-7</dim></port></input>", text)
    text = changed(' name="relu"', "", text)
    text = changed('to-layer="2"', 'to-layer="9"', text)
    model, errors = faults(text)
    assert len(errors) == 5  # the fifth: the Result is fed by no edge
    assert [n.id for n in model.nodes] == [0, 1, 2]


def test_an_invalid_layer_has_its_declared_types() -> None:
    model, errors = faults(changed('element_type="f32"', 'element_type="float"'))
    assert len(errors) == 1
    (port,) = irload.infer(model).outputs
    assert (port.element_type.name, port.shape) == ("f32", (1, 3))


def test_lines_beyond_65535() -> None:
    text = changed("<layers>", "<layers>" + "\n" * 70_000, changed(' name="relu"', ""))
    _, errors = faults(text)
    assert errors == ["line 70001: ReLU (id 1): <layer> has no attribute name"]


def test_a_layer_without_version_is_of_opset1() -> None:
    model, errors = faults(changed('type="ReLU" version="opset1"', 'type="ReLU"'))
    assert not errors
    assert "has no version; read as opset1" in model.warnings[0]
    assert model.nodes[1].op.opset == "opset1"


def test_unknown_elements_are_a_warning() -> None:
    model, errors = faults(changed("<data ", "<dataa/><data "))
    assert not errors
    assert "unknown element <dataa>" in model.warnings[0]


def test_without_result_there_are_no_outputs() -> None:
    model, errors = faults(net(PARAMETER, ""))
    assert (errors, model.outputs) == ([], [])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a, b ,,c", ("a", " b ", "c")),
        (r"a\,b", ("a,b",)),
        (r"a\b,\,", (r"a\b", ",")),
        ("", ()),
        (",", ()),
        ("é,\n", ("é", "\n")),
    ],
)
def test_tensor_names(text: str, names: tuple[str, ...]) -> None:
    assert split_names(text) == names
    assert set(split_names(join_names(names))) == set(names)


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ('<rt_info><a value="1"/><b><c value="2"/></b></rt_info>', {"a": "1", "b": {"c": "2"}}),
        ('<rt_info><info name="odd key" value="3"/></rt_info>', {"odd key": "3"}),
        ("<rt_info/>", {}),
        ('<meta_data><MO_version value="x"/></meta_data>', {"meta_data": {"MO_version": "x"}}),
        (
            '<meta_data><cli_parameters><m value="1"/></cli_parameters></meta_data>',
            {"meta_data": {"cli_parameters": {"m": "1"}}},
        ),
        ("<quantization_parameters><config>c</config></quantization_parameters>", None),
        ('<rt_info><a value="1"/></rt_info><meta_data><q value="2"/></meta_data>', {"a": "1"}),
        ('<meta_data><q value="2"/></meta_data><rt_info><a value="1"/></rt_info>', {"a": "1"}),
    ],
)
def test_metadata(tail: str, expected: dict[str, object] | None) -> None:
    model, errors = faults(net(tail=tail))
    assert not errors
    assert model.rt_info == ({"quantization_parameters": {"config": "c"}} if expected is None else expected)
    runtime_model(net(tail=tail))


@pytest.mark.parametrize(("version", "kept"), [("11", 1), ("10", 0)])
def test_rt_info_of_layers(version: str, kept: int) -> None:
    rt_info = '<rt_info><attribute name="fused_names" version="0" value="a,b"/></rt_info>'
    model, _ = faults(changed("<input>", f"{rt_info}<input>", net(version=version)))
    assert len(model.nodes[1].rt_info) == kept


IMAGE = PARAMETER.replace('"1,3"', '"1,3,2,2"')
X = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)


def means(inner: str, name: str = ' reference-layer-name="in"') -> str:
    return net(IMAGE + RELU + RESULT, tail=f"<pre-process{name}>{inner}</pre-process>")


VALUES = "".join(f'<channel id="{k}"><mean value="{k}.5"/></channel>' for k in range(3))
IMAGES = "".join(f'<channel id="{k}"><mean offset="{16 * k}" size="16"/></channel>' for k in range(3))
BACKWARDS = "".join(f'<channel id="{k}"><mean value="{k}.5"/></channel>' for k in (2, 0, 1))


@pytest.mark.parametrize("text", [means(VALUES), means(IMAGES), means(BACKWARDS), means(VALUES, "")])
def test_means_are_subtracted_as_by_the_runtime(text: str) -> None:
    weights = (np.arange(12, dtype=np.float32) / 2).tobytes()
    model = irload.read_model(text.encode(), weights)
    ours = irload.compile_model(model)(X)[0]
    assert len({n.id for n in model.nodes}) == 5
    theirs = core().compile_model(runtime_model(text, weights), "CPU")(X)[0]
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "text",
    [
        means(VALUES, ' reference-layer-name="nope"'),
        means(VALUES.split("</channel>")[0] + "</channel>"),
        means(IMAGES.replace('size="16"', 'size="12"')),
        means(VALUES.replace('"1.5"', '"x"')),
        means(IMAGES.replace('offset="16"', 'offset="-1"')),
    ],
)
def test_means_that_do_not_fit(text: str) -> None:
    _, errors = faults(text, bytes(48))
    assert len(errors) >= 1


def test_means_without_a_name_apply_to_the_first_input_of_rank_4() -> None:
    """A net of three inputs; only the last two have rank 4."""
    inputs = "".join(
        IMAGE.replace('id="0" name="in"', f'id="{k}" name="in{k}"').replace("1,3,2,2", shape)
        for k, shape in ((7, "1,3"), (8, "1,3,2,2"), (9, "1,3,2,2"))
    )
    tail = f"<pre-process>{VALUES}</pre-process>"
    model, errors = faults(net(inputs, "", tail))
    assert not errors
    assert [n.name for n in model.nodes if n.type == "Subtract"] == ["in8/subtract_mean"]


def chain(count: int) -> str:
    layers = [PARAMETER]
    edges: list[str] = []
    for k in range(1, count):
        layers.append(RELU.replace('id="1" name="relu"', f'id="{k}" name="r{k}"').replace('"y"', f'"y{k}"'))
        edges.append(f'<edge from-layer="{k - 1}" from-port="{int(k > 1)}" to-layer="{k}" to-port="0"/>')
    layers.append(RESULT.replace('id="2"', f'id="{count}"'))
    edges.append(f'<edge from-layer="{count - 1}" from-port="1" to-layer="{count}" to-port="0"/>')
    return net("".join(layers), "".join(edges))


def test_a_long_chain_is_read_without_recursion() -> None:
    model = irload.read_model(chain(5_000).encode())
    assert len(model.nodes) == 5_001
    assert model.outputs[0].shape == (1, 3)


def test_memory_stays_flat_while_streaming() -> None:
    text = net(tail="<statistics>" + "<layer><statistics/></layer>" * 10 + "</statistics>").encode()
    assert len(read_xml(text).graph.layers) == 3
    many = chain(3_000).encode()
    tracemalloc.start()
    read_xml(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000 * 3_000


def wide(count: int) -> Callable[[], object]:
    """Reading a layer of that many inputs."""
    ports = "".join(f'<port id="{k}"/>' for k in range(count))
    concat = (
        f'<layer id="1" name="c" type="Concat" version="opset1"><data axis="0"/><input>{ports}</input>'
        f'<output><port id="{count}" precision="FP32"/></output></layer>'
    )
    edges = "".join(f'<edge from-layer="0" from-port="0" to-layer="1" to-port="{k}"/>' for k in range(count))
    edges += f'<edge from-layer="1" from-port="{count}" to-layer="2" to-port="0"/>'
    text = net(PARAMETER + concat + RESULT, edges).encode()

    def task() -> None:
        assert irload.read_model(text).outputs[0].shape == (count, 3)

    return task


def test_a_wide_layer_takes_linear_time() -> None:
    assert growth(wide, 20_000) < LINEAR


@pytest.mark.parametrize("cut", range(0, len(BASE), 37))
def test_a_file_that_is_cut_anywhere(cut: int) -> None:
    with pytest.raises(IRError):
        irload.read_model(BASE[:cut].encode())
