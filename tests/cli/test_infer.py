"""irrun infer: inferred and declared types, and whether they agree."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset8 as ops

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.graph import Declared, Node, Output, UnknownOp
from irload.read import read_graph
from irload.validation.declared import compare, declares_static
from irrun.main import FINDINGS, OK, USAGE
from tests.cli.conftest import MODELS
from tests.cli.test_inspect import broken

DIGITS = MODELS / "digits" / "model.xml"


def judged(element, dims, inferred, *, static=True):
    node = Node(0, "n", UnknownOp("X", "opset1", {}))
    output = Output(node, 0, declared=Declared(element, dims), type=inferred)
    comparison = compare(output, static_file=static)
    return comparison.element, comparison.shape


@pytest.mark.parametrize(
    ("element", "dims", "inferred", "differs"),
    [
        (et.f32, (1, 3), TensorType(et.f32, Shape(1, 3)), (False, False)),
        (et.f32, (1, 4), TensorType(et.f32, Shape(1, 3)), (False, True)),
        (et.f16, (1, 3), TensorType(et.f32, Shape(1, 3)), (True, False)),
        (None, (1, 3), TensorType(et.f32, Shape(1, 3)), (False, False)),
        (et.dynamic, (1, 3), TensorType(et.f32, Shape(1, 3)), (False, False)),
        (et.f32, (1, 3), TensorType(et.dynamic, Shape(1, 3)), (False, False)),
        (et.f32, (1, -1), TensorType(et.f32, Shape(1, 3)), (False, False)),
        (et.f32, (1, -1), TensorType(et.f32, Shape(1, None)), (False, False)),
        (et.f32, (1, 3), TensorType(et.f32, Shape(1, None)), (False, False)),
        (et.f32, (1, 3), TensorType(et.f32, Shape(1, (2, 4))), (False, False)),
        (et.f32, (1, 5), TensorType(et.f32, Shape(1, (2, 4))), (False, True)),
        (et.f32, (1, 3, 1), TensorType(et.f32, Shape(1, 3)), (False, True)),
        (et.f32, (1, 3), TensorType(et.f32, Shape.unranked()), (False, False)),
        (et.f32, None, TensorType(et.f32, Shape()), (False, False)),
        (et.f32, None, TensorType(et.f32, Shape.unranked()), (False, False)),
        (et.f32, None, TensorType(et.f32, Shape(3)), (False, True)),
    ],
)
def test_judgement(element, dims, inferred, differs):
    assert judged(element, dims, inferred) == differs


def test_ports_without_dims_are_unknown_in_a_dynamic_file():
    assert judged(et.f32, None, TensorType(et.f32, Shape(3)), static=False) == (False, False)


@pytest.mark.parametrize(
    ("name", "static"), [("digits", False), ("dynamic", False), ("conv_openvino", True), ("loop", False)]
)
def test_static_files(name, static):
    assert declares_static(read_graph(MODELS / name / "model.xml")) is static


def test_a_sound_model(irrun):
    outcome = irrun("infer", DIGITS)
    assert outcome.code == OK
    assert "23 layers: all as declared" in outcome.out


def test_a_difference_is_marked_and_exits_1(irrun, tmp_path):
    port = '<port id="2" precision="FP32">\n\t\t\t\t\t<dim>-1</dim>\n\t\t\t\t\t<dim>{}</dim>'
    file = broken(tmp_path, (port.format(32), port.format(33)))
    outcome = irrun("infer", file, "--differences")
    assert outcome.code == FINDINGS
    rows = [line for line in outcome.out.splitlines() if line.startswith("≠")]
    assert len(rows) == 1
    assert rows[0].split()[1:] == ["10", "Convolution", "conv1", "f32[?,32,4,4]", "f32[?,33,4,4]"]
    assert irrun("infer", file, "--json").json["differing"] == 1


def test_inference_continues_after_a_layer_that_fails(irrun, tmp_path):
    outcome = irrun("infer", broken(tmp_path, ("16,1,3,3", "8,2,3,3")))
    assert outcome.code == FINDINGS
    assert "✗" in outcome.out
    assert "23 layers, " in outcome.out


def test_unknown_operations_are_no_difference(irrun, tmp_path):
    file = broken(tmp_path, ('type="ReLU" version="opset1"', 'type="FooBar" version="opset1"'))
    outcome = irrun("infer", file)
    assert outcome.code == OK
    assert "1 unknown" in outcome.out


@pytest.mark.parametrize(
    ("text", "shape", "agrees"),
    [("image[2,1,8,8]", "f32[2,10]", True), ("[2..4,1,8,8]", "f32[2..4,10]", True), ("[1,1,12,12]", "", False)],
)
def test_other_input_shapes(irrun, text, shape, agrees):
    outcome = irrun("infer", DIGITS, "--shape", text, "--json")
    assert outcome.json["agrees"] is agrees
    assert outcome.code == (OK if agrees else FINDINGS)
    if agrees:
        assert outcome.json["layers"][-2]["outputs"][0]["inferred"] == shape


def test_bodies_are_shown(irrun):
    assert "doubling/body/value" in irrun("infer", MODELS / "loop" / "model.xml").out


def test_write_corrects_the_ports_and_nothing_else(irrun, tmp_path):
    port = '<port id="2" precision="FP32">\n\t\t\t\t\t<dim>-1</dim>\n\t\t\t\t\t<dim>{}</dim>'
    file = broken(tmp_path, (port.format(32), port.format(33)))
    weights = file.with_suffix(".bin").read_bytes()
    outcome = irrun("infer", file, "--differences", "--write", tmp_path / "fixed.xml")
    assert outcome.code == OK
    assert "fixed.xml, 1 port corrected" in outcome.err
    assert (tmp_path / "fixed.xml").read_bytes() == DIGITS.read_bytes()
    assert irrun("infer", file, "--write", file).code == USAGE
    assert irrun("infer", file, "--write", file, "--force").code == OK
    assert file.read_bytes() == DIGITS.read_bytes()
    assert file.with_suffix(".bin").read_bytes() == weights


def test_write_leaves_invalid_layers_unchanged(irrun, tmp_path):
    file = broken(tmp_path, ("16,1,3,3", "8,2,3,3"))
    outcome = irrun("infer", file, "--write", tmp_path / "fixed.xml")
    assert outcome.code == FINDINGS
    assert (tmp_path / "fixed.xml").exists()


def test_write_needs_no_weights(irrun, tmp_path):
    file = broken(tmp_path, weights=False)
    assert irrun("infer", file, "--write", tmp_path / "fixed.xml").code == OK
    assert (tmp_path / "fixed.xml").read_bytes() == DIGITS.read_bytes()


def test_parts_of_an_unknown_number_have_the_declared_type_without_weights(irrun, tmp_path):
    x = ops.parameter([1, 4], np.float32)
    lengths = ops.reshape(ops.constant(np.array([[1, 3]])), ops.constant(np.array([-1])), special_zero=False)
    split = ops.variadic_split(x, ops.constant(np.array(1)), lengths)
    ov.save_model(ov.Model(split.outputs(), [x]), tmp_path / "split.xml")
    (tmp_path / "split.bin").unlink()
    outcome = irrun("infer", tmp_path / "split.xml")
    assert outcome.code == OK
    assert "dynamic" not in outcome.out
    assert all(outcome.out.count(text) >= 2 for text in ("f32[1,1]", "f32[1,3]")), "inferred and declared"


def test_write_and_shape_exclude_each_other(irrun, tmp_path):
    outcome = irrun("infer", DIGITS, "--shape", "[1,1,8,8]", "--write", tmp_path / "fixed.xml")
    assert outcome.code == USAGE
    assert "--shape" in outcome.err
