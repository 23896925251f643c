"""Texts that both OpenVINO and irload load with the same interface: names, shapes, types, order."""

from __future__ import annotations

import pytest

from irload.errors import IRError
from irload.ops.convolution.forward import Convolution
from irload.ops.matrix.matmul import MatMul
from irload.read.wiring import _integer
from tests.read.texts import BASE, EDGES, PARAMETER, RELU, RESULT, changed, net, ours, theirs

SPLIT = net(
    PARAMETER.replace("1,3", "1,4")
    + '<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>'
    '<output><port id="0" precision="I64"/></output></layer>'
    '<layer id="2" name="s" type="Split" version="opset1"><data num_splits="2"/><input><port id="0"/><port id="1"/>'
    '</input><output><port id="2" precision="FP32" names="p"/>'
    '<port id="3" precision="FP32" names="q"/></output></layer>'
    '<layer id="3" name="o1" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    '<layer id="4" name="o2" type="Result" version="opset1"><input><port id="0"/></input></layer>',
    '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
    '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'
    '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>'
    '<edge from-layer="2" from-port="3" to-layer="4" to-port="0"/>',
)
ONE = (1).to_bytes(8, "little")

SAME = {
    "as written": BASE,
    "layers in reverse": net(RESULT + RELU + PARAMETER),
    "edges in reverse": net(edges="".join(reversed(EDGES.replace("/><", "/>|<").split("|")))),
    "no XML declaration": changed('<?xml version="1.0"?>', ""),
    "a byte order mark": "\N{BYTE ORDER MARK}" + BASE,
    "a long comment first": changed("<net", f"<!-- {'-' * 0}{'x' * 100_000} --><net"),
    "NET": BASE.replace("<net", "<NET").replace("</net", "</NET"),
    "net without a name": changed(' name="m"', ""),
    "version with blanks and zeros": changed('version="11"', 'version=" 011"'),
    "leading zeros in ids": changed('id="2"', 'id="002"'),
    "blanks around ids": changed('id="2"', 'id=" 2"'),
    "plus sign in an id": changed('id="2"', 'id="+2"'),
    "sparse ids": BASE.replace('id="2"', 'id="900"').replace('to-layer="2"', 'to-layer="900"'),
    "empty layer name": changed('name="relu"', 'name=""'),
    "one name for two layers": changed('name="relu"', 'name="in"'),
    "children in another order": net(
        PARAMETER
        + RELU.replace("<input>", "|<input>").replace("<output>", "|<output>").split("|")[0]
        + "<output>"
        + RELU.split("<output>")[1].replace("</layer>", "")
        + "<input>"
        + RELU.split("<input>")[1].split("<output>")[0]
        + "</layer>"
        + RESULT
    ),
    "gaps in port ids": BASE.replace('<port id="1" p', '<port id="7" p').replace('from-port="1"', 'from-port="7"'),
    "stale dims on ports": BASE.replace("<dim>3</dim>", "<dim>99</dim>"),
    "stale precision on ports": changed('<port id="1" precision="FP32"', '<port id="1" precision="I64"'),
    "an unknown input precision": changed('<input><port id="0" precision="FP32"', '<input><port id="0"'),
    "names with commas, blanks, backslashes": changed('names="y"', r'names="a, b ,,c\,d,e\f"'),
    "output_names": changed('name="out"', r'name="out" output_names="q,w\,e"'),
    "escapes in names": changed('names="y"', 'names="&lt;&amp;&quot;&#10;é😀"'),
    "version 10": net(version="10"),
    "version 10 without names": changed(' names="y"', "", net(version="10")),
    "several outputs": SPLIT,
    "several outputs in version 10": SPLIT.replace('version="11"', 'version="10"'),
    "version 10 ignores output_names": changed('name="out"', 'name="out" output_names="q"', net(version="10")),
    "a dead layer of no known type": net(
        PARAMETER + RELU + RESULT + '<layer id="9" name="f" type="FooOp" version="opset1">'
        '<output><port id="0" precision="FP32"/></output></layer>'
    ),
    "relu in lower case": changed('type="ReLU"', 'type="relu"'),
    "a later opset": changed('type="ReLU" version="opset1"', 'type="ReLU" version="opset13"'),
    "rt_info of a layer": changed(
        "</output></layer>", '</output><rt_info><attribute name="x" version="0"/></rt_info></layer>'
    ),
    "rt_info that looks like layers": net(tail='<rt_info><layers><layer id="0"><edge/></layer></layers></rt_info>'),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_inputs_and_outputs_equal_the_runtimes(text: str) -> None:
    assert ours(text, ONE) == theirs(text, ONE)


@pytest.mark.parametrize(
    "shape",
    ["1,3", " 1 , 3 ", "[1,3]", "1,?", "-1,3", "1..2,3", "..4,3", "2..,3", "...", " ... ", "", "0,3", "01,3", "?"],
)
def test_shapes_of_parameters(shape: str) -> None:
    text = changed('shape="1,3"', f'shape="{shape}"')
    assert ours(text) == theirs(text)


def test_a_parameter_without_shape_is_a_scalar() -> None:
    text = changed('shape="1,3" ', "")
    assert ours(text) == theirs(text)


@pytest.mark.parametrize(
    "shape", ["-2,3", "1.5,3", "a", "+1,3", "1 3", "1..?", "...,3", "2..1,3", "1,,3", "1,3,", "1," + "9" * 30]
)
def test_invalid_shapes_are_rejected(shape: str) -> None:
    with pytest.raises(IRError, match="shape"):
        ours(changed('shape="1,3"', f'shape="{shape}"'))


@pytest.mark.parametrize("element", ["f32", "F32", "boolean", "i4", "nf4", "dynamic", "undefined"])
def test_element_types_of_parameters(element: str) -> None:
    text = net(
        PARAMETER.replace('"f32"', f'"{element}"') + RESULT,
        '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>',
    )
    assert ours(text) == theirs(text)


@pytest.mark.parametrize(
    "precision", ["f32", "boolean", "dynamic", "undefined", "UNSPECIFIED", "BIN", "U1", "STRING", "nf4"]
)
def test_precisions_that_both_read(precision: str) -> None:
    text = changed('<port id="1" precision="FP32"', f'<port id="1" precision="{precision}"')
    assert ours(text) == theirs(text)


OUTPUT_PORT = RELU.split("<output>")[1].split("</output>")[0]
FUSED = '<attribute name="fused_names" version="0" value="a"/>'

REFUSED = {
    "version 9": net(version="9"),
    "no layer id": changed('<layer id="1"', "<layer"),
    "id with letters": changed('id="2"', 'id="2x"'),
    "negative id": changed('id="2"', 'id="-2"'),
    "no name": changed(' name="relu"', ""),
    "no type": changed(' type="ReLU"', ""),
    "no output port id": changed('<port id="1" precision', "<port precision"),
    "no output precision": changed('<port id="1" precision="FP32"', '<port id="1"'),
    "no input port id": changed(
        '<port id="0" precision="FP32"><dim>1</dim><dim>3</dim></port></input>', "<port/></input>"
    ),
    "no edge end": changed(' to-port="0"', ""),
    "dim -2": changed("<dim>3</dim></port></input>", "<dim>-2</dim></port></input>"),
    "empty dim": changed("<dim>3</dim></port></input>", "<dim/></port></input>"),
    "precision fp32": changed('<port id="1" precision="FP32"', '<port id="1" precision="fp32"'),
    "precision UNDEFINED": changed('<port id="1" precision="FP32"', '<port id="1" precision="UNDEFINED"'),
    "precision MIXED": changed('<port id="1" precision="FP32"', '<port id="1" precision="MIXED"'),
    "element type FP32": changed('element_type="f32"', 'element_type="FP32"'),
    "edge from nowhere": changed('from-layer="0"', 'from-layer="77"'),
    "edge from no port": changed('from-port="1"', 'from-port="5"'),
    "edge to no port": changed('to-port="0"', 'to-port="5"'),
    "edge missing": net(edges=EDGES.split("/>")[1] + "/>"),
    "edge twice": net(edges=EDGES + EDGES.split("/>")[0] + "/>"),
    "self loop": changed('from-layer="0" from-port="0"', 'from-layer="1" from-port="1"'),
    "rt_info attribute twice": changed(
        "<input>",
        f"<rt_info>{FUSED}{FUSED}</rt_info><input>",
    ),
    "meta_data without value": net(tail="<meta_data><MO_version/></meta_data>"),
    "pre-process of nothing": net(
        tail='<pre-process reference-layer-name="x9"><channel id="0"><mean value="1"/></channel></pre-process>'
    ),
    "a blank behind the version": changed('version="11"', 'version="11 "'),
    "a blank behind an id": changed('id="2"', 'id="2 "'),
    "a blank behind a port id": changed('<port id="1" p', '<port id="1 " p'),
    "a blank behind the end of an edge": changed('to-port="0"', 'to-port="0 "'),
    "a blank before an element type": changed('element_type="f32"', 'element_type=" f32"'),
    "a blank behind an offset": changed('offset="0"', 'offset="0 "', SPLIT),
    "an empty constant beyond the weights": changed('shape="" offset="0"', 'shape="0" offset="9"', SPLIT),
    "plus sign in an attribute": changed('num_splits="2"', 'num_splits="+2"', SPLIT),
    "two output ports with one id": changed(OUTPUT_PORT, OUTPUT_PORT * 2),
    "more output ports than outputs": changed(OUTPUT_PORT, OUTPUT_PORT + OUTPUT_PORT.replace('id="1"', 'id="5"')),
    "mismatched tags": BASE.replace("</net>", "</nett>"),
    "cut off": BASE[:-20],
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_invalid_files_are_rejected_by_both(text: str) -> None:
    with pytest.raises(IRError):
        ours(text, ONE)
    with pytest.raises(RuntimeError):
        theirs(text, ONE)


@pytest.mark.parametrize("start", [str(-(2**63) - 1), str(2**63), "", "0 "])
def test_numbers_of_a_port_map_fit_64_bits(start: str) -> None:
    with pytest.raises(IRError, match="must be an integer of 64 bits"):
        _integer({"start": start}, "start", 0)
    assert _integer({}, "start", 0) == 0
    assert _integer({"start": f" {-(2**63)}"}, "start", 0) == -(2**63)


def test_words_hold_no_blanks() -> None:
    """OpenVINO rejects blanks in an enumerated value, and reads them as part of the text of a boolean."""
    with pytest.raises(IRError, match="is not one of"):
        Convolution.parse({"strides": "1", "dilations": "1", "auto_pad": "valid "})
    op, _ = MatMul.parse({"transpose_a": " true", "transpose_b": "True"})
    assert (op.attributes["transpose_a"], op.attributes["transpose_b"]) == (False, True)
