"""irrun inspect: the contents of a model, including faulty and incomplete ones."""

from __future__ import annotations

import re
import shutil

import pytest

from irrun.main import OK, UNREADABLE
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits" / "model.xml"
DYNAMIC = MODELS / "dynamic" / "model.xml"


def broken(tmp_path, *replacements: tuple[str, str], weights: bool = True):
    """A copy of the digits model with parts of its text replaced."""
    text = DIGITS.read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "model.xml").write_text(text)
    if weights:
        shutil.copy(DIGITS.with_suffix(".bin"), tmp_path)
    return tmp_path / "model.xml"


def test_the_report(irrun):
    document = irrun("inspect", DIGITS, "--json").json
    image = {"name": "image", "names": ["image"], "type": "f32", "shape": "[?,1,8,8]", "graph_type": "f32"}
    assert document["inputs"] == [image]
    assert document["outputs"][0]["shape"] == "[?,10]"
    assert {(o["type"], o["count"]) for o in document["operations"]} >= {
        ("Convolution", 2),
        ("Const", 8),
        ("MatMul", 1),
    }
    floats, integers = document["constants"]
    values = 1 + 16 * 9 + 16 + 32 * 16 * 9 + 32 + 10 * 128 + 10
    assert floats == {"type": "f32", "count": 7, "values": values, "bytes": 4 * values}
    assert integers == {"type": "i64", "count": 1, "values": 2, "bytes": 16}
    assert document["warnings"] == []
    assert "layers" not in document


def test_layers_of_bodies_follow_their_layer(irrun):
    layers = irrun("inspect", MODELS / "loop" / "model.xml", "--layers", "--json").json["layers"]
    loop = next(k for k, row in enumerate(layers) if row["type"] == "Loop")
    assert {row["body"] for row in layers[loop + 1 : loop + 6]} == {"doubling/body"}
    assert layers[loop]["outputs"] == [{"type": "f32", "shape": "[1,2]"}, {"type": "f32", "shape": "[?,2]"}]


def test_without_weights(irrun, tmp_path):
    outcome = irrun("inspect", broken(tmp_path, weights=False), "--json")
    assert outcome.code == OK
    assert outcome.json["weights"] is None
    assert outcome.json["outputs"][0]["shape"] == "[?,10]"
    (warning,) = outcome.json["warnings"]
    assert ".bin" in warning


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('type="ReLU" version="opset1"', 'type="FooBar" version="opset1"', "FooBar"),
        ('strides="1,1"', 'strides="1,1,1"', "conv0"),
        ('strides="1,1"', 'strides="0,1"', "conv0"),
        ('to-layer="22" to-port="0"', 'to-layer="99" to-port="0"', "there is no layer 99"),
        ("</layers>", '<layer id="90" name="y" type="Parameter" version="opset1"/></layers>', "'y'"),
        (
            "</layers>",
            '<layer id="90" name="y" type="Parameter" version="opset1"><data element_type="f32"/></layer></layers>',
            "Parameter 'y' (id 90): has no output port",
        ),
    ],
)
def test_faults_become_warnings(irrun, tmp_path, old, new, said):
    outcome = irrun("inspect", broken(tmp_path, (old, new)), "--json")
    assert outcome.code == OK
    assert any(said in warning for warning in outcome.json["warnings"])


def test_unknown_operations_are_marked(irrun, tmp_path):
    file = broken(tmp_path, ('type="ReLU" version="opset1"', 'type="FooBar" version="opset1"'))
    row = next(o for o in irrun("inspect", file, "--json").json["operations"] if o["type"] == "FooBar")
    assert row == {"type": "FooBar", "opset": "opset1", "count": 1, "known": False}
    assert "FooBar (unknown)" in irrun("inspect", file).out


def test_long_lists_of_warnings_are_cut(irrun, tmp_path):
    unknown = "".join(f'<layer id="{900 + k}" name="z" type="Zzz{k}" version="opset1"/>' for k in range(30))
    file = broken(tmp_path, ("</layers>", unknown + "</layers>"))
    assert "more warnings" in irrun("inspect", file).out


def test_warnings_of_one_kind_are_one_line(irrun, tmp_path):
    xml = DIGITS.read_text()
    (tmp_path / "model.xml").write_text(xml.replace('<data strides="', '<data output_padding="" strides="'))
    outcome = irrun("inspect", tmp_path / "model.xml")
    count = xml.count('<data strides="')
    assert count > 1
    assert next(line for line in outcome.out.splitlines() if "output_padding" in line).endswith(
        f"unknown attribute output_padding ({count - 1} more of this kind)"
    )
    assert outcome.out.count("output_padding") == 1


def test_warnings_that_differ_in_numbers_are_one_line(irrun, tmp_path):
    (tmp_path / "model.xml").write_bytes(DIGITS.read_bytes())
    (tmp_path / "model.bin").write_bytes(b"\0" * 100)
    warnings = [
        line for line in irrun("inspect", tmp_path / "model.xml").out.splitlines() if "outside the .bin" in line
    ]
    assert len(warnings) == 1
    assert "more of this kind" in warnings[0]


def test_an_unreadable_model_is_an_error(irrun, tmp_path):
    (tmp_path / "x.xml").write_text("<net")
    outcome = irrun("inspect", tmp_path / "x.xml")
    assert outcome.code == UNREADABLE
    assert not outcome.out


CONVERTED = """<rt_info>
<MO_version value="2022.1"/>
<conversion_parameters><data_type value="FP16"/><framework value="onnx"/><silent value="True"/></conversion_parameters>
<model_info><labels value="a b"/></model_info>
</rt_info></net>"""


def test_the_summary_has_parameters_macs_and_memory(irrun):
    document = irrun("inspect", DIGITS, "--shape", "[1,1,8,8]", "--json").json
    parts = irrun("inspect", DIGITS, "--shape", "[1,1,8,8]", "--macs", "--memory", "--json").json
    assert document["costs"] == {
        "parameters": 1 + 16 * 9 + 16 + 32 * 16 * 9 + 32 + 10 * 128 + 10,  # not the target of a Reshape
        "macs": 84_224,
        "unknown_macs": 0,
        "constants": parts["memory"]["constants"],
        "peak": parts["memory"]["peak"],
        "unknown_peak": 0,
    }
    shown = irrun("inspect", DIGITS, "--shape", "[1,1,8,8]").out
    assert "6,091 parameters, 84,224 MACs\n" in shown
    assert "of memory at the peak: constants 24.4 KB, activations " in shown
    shown = irrun("inspect", DIGITS).out
    assert "6,091 parameters, unknown number of MACs\n" in shown
    assert "not counted, because shapes are dynamic: 3 layers and 13 tensors. Set input sizes with --shape\n" in shown
    shown = irrun("inspect", DIGITS, "--macs", "--memory").out
    assert "\nunknown number of MACs\n" in shown
    assert re.search(r"activations at their peak +unknown\n", shown)
    assert irrun("inspect", DIGITS, "--shape", "[1,1,8,8]", "--macs").out.endswith("84,224 MACs (0.0001684 GFLOPs)\n")
    assert re.search(
        r"\n0 parameters, 0 MACs\nat least 56 bytes .* activations 32 bytes\n", irrun("inspect", DYNAMIC).out
    )


def test_options_of_the_conversion_take_one_line(irrun, tmp_path):
    file = broken(tmp_path, ("</net>", CONVERTED))
    shown = irrun("inspect", file).out
    assert "conversion_parameters   3 options (--metadata shows them)" in shown
    assert "conversion_parameters.data_type" not in shown
    assert "model_info.labels" in shown
    shown = irrun("inspect", file, "--metadata").out
    assert "conversion_parameters.framework   onnx" in shown
    assert "Convolution" not in shown
    assert irrun("inspect", file, "--json").json["metadata"]["conversion_parameters"]["data_type"] == "FP16"
