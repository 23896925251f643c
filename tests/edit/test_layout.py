"""layout: Transposes at ports, which remain or are merged with Transposes of the model."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import irload
from irload import edit


def read(model: ov.Model, tmp_path) -> irload.Model:
    ov.serialize(model, tmp_path / "m.xml")
    return irload.read_model(tmp_path / "m.xml")


def run(model: irload.Model, *inputs: np.ndarray) -> np.ndarray:
    return irload.compile_model(model)(inputs)[0]


def nhwc_network() -> ov.Model:
    """A network as TensorFlow's frontend writes it: NHWC outside, Transposes around a convolution."""
    rng = np.random.default_rng(0)
    x = op.parameter([1, 8, 8, 3], np.float32, name="x")
    scaled = op.relu(op.multiply(op.subtract(x, op.constant(np.float32([1, 2, 3]))), op.constant(np.float32(0.5))))
    filters = op.constant(rng.standard_normal((4, 3, 3, 3)).astype(np.float32))
    inside = op.transpose(scaled, np.int64([0, 3, 1, 2]))
    conv = op.convolution(inside, filters, [1, 1], [0, 0], [0, 0], [1, 1])
    outside = op.transpose(conv, np.int64([0, 2, 3, 1]))
    result = op.tanh(op.add(outside, op.constant(rng.standard_normal((1, 1, 1, 4)).astype(np.float32))))
    result.output(0).set_names({"y"})
    return ov.Model([result], [x])


X = np.random.default_rng(1).standard_normal((1, 8, 8, 3)).astype(np.float32)


@pytest.mark.parametrize("transposes", [True, False])
def test_both_ends_of_a_network(transposes, tmp_path) -> None:
    model = read(nhwc_network(), tmp_path)
    changed = edit.layout(model, {"x": "NCHW", "y": "NCHW"}, transposes=transposes)
    assert (changed.inputs[0].shape, changed.outputs[0].shape) == ((1, 3, 8, 8), (1, 4, 6, 6))
    assert [n.type for n in changed.nodes].count("Transpose") == (4 if transposes else 0)
    expected = run(model, X).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(run(changed, X.transpose(0, 3, 1, 2)), expected, atol=1e-5)
    assert changed.outputs[0].any_name == "y"
    irload.save_model(changed, tmp_path / "new.xml")
    theirs = ov.Core().read_model(tmp_path / "new.xml")
    assert [str(theirs.inputs[0].node.layout), str(theirs.get_results()[0].layout)] == ["[N,C,H,W]", "[N,C,H,W]"]


def test_back_and_forth_is_the_identity(tmp_path) -> None:
    model = read(nhwc_network(), tmp_path)
    there = edit.layout(model, {"x": "NCHW", "y": "NCHW"})
    back = edit.layout(there, {"x": "NHWC", "y": "NHWC"}, transposes=False)
    assert [n.type for n in back.nodes].count("Transpose") == 2
    np.testing.assert_allclose(run(back, X), run(model, X), atol=1e-6)


def test_layers_that_depend_on_the_layout_are_named(digits, tmp_path) -> None:
    with pytest.raises(irload.InputInvalid, match="Convolution 'conv0' depends on the current layout"):
        edit.layout(digits, {"image": "NHWC"}, transposes=False)
    model = edit.add_output(read(nhwc_network(), tmp_path), "Transpose*")
    with pytest.raises(irload.InputInvalid, match="current layout"):
        edit.layout(model, {"y": "NCHW"}, transposes=False)


@pytest.mark.parametrize(
    ("layouts", "fact"),
    [
        ({"imag": "NHWC"}, r"no input named 'imag'; the model has 'image', and the outputs 'probabilities'"),
        ({"image": "NCWH"}, "the current layout of 'image' is unknown; state both"),
        ({"image": "NHC"}, r"layout NHC has 3 axes, 'image' \[\?,1,8,8\] has 4"),
        ({"image": "NCHW->NHWD"}, "the layout NHWD of 'image' must consist of the axes of NCHW, each once"),
        ({"probabilities": "NHWC"}, r"layout NHWC has 4 axes, 'probabilities' \[\?,10\] has 2"),
        ({"image": "NHW->NHWC"}, r"'image' has shape \[\?,1,8,8\]; the layout NHW has 3 axes"),
    ],
)
def test_refused_layouts(digits, layouts, fact) -> None:
    with pytest.raises(irload.InputInvalid, match=fact):
        edit.layout(digits, layouts)


def test_an_output_that_is_an_input(tmp_path) -> None:
    x = op.parameter([2, 3], np.float32, name="x")
    x.output(0).set_names({"x"})
    model = edit.layout(read(ov.Model([x, op.relu(x)], [x]), tmp_path), {"result_0": "NC->CN"})
    result = irload.compile_model(model)(np.float32([[1, 2, 3], [4, 5, 6]]))
    assert result[0].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert model.inputs[0].any_name == "x"
