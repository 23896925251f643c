"""embed: the preprocessing that OpenVINO's PrePostProcessor builds, and Pillow's resizing."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op
from openvino.preprocess import PrePostProcessor, ResizeAlgorithm
from PIL import Image

import irload
from irload import edit

PHOTO = np.random.default_rng(0).integers(0, 256, (1, 21, 30, 3)).astype(np.uint8)
MEAN, SCALE = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A model of NCHW images that returns them."""
    x = op.parameter([1, 3, 12, 16], np.float32, name="x")
    x.output(0).set_names({"x"})
    path = tmp_path_factory.mktemp("embed") / "m.xml"
    ov.serialize(ov.Model([op.relu(op.add(x, np.float32(300)))], [x]), path)
    return path


@pytest.fixture(scope="module")
def model(file) -> irload.Model:
    return irload.read_model(file)


def run(model: irload.Model, x: np.ndarray) -> np.ndarray:
    return irload.compile_model(model)(x)[0] - 300


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_as_the_runtime_preprocesses(mode, file, model, tmp_path) -> None:
    steps = PrePostProcessor(ov.Core().read_model(file))
    steps.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")).set_spatial_dynamic_shape()
    steps.input().model().set_layout(ov.Layout("NCHW"))
    algorithm = getattr(ResizeAlgorithm, f"RESIZE_{mode.upper()}")
    steps.input().preprocess().convert_element_type(ov.Type.f32).resize(algorithm).reverse_channels()
    steps.input().preprocess().mean(list(MEAN)).scale(list(SCALE))
    expected = ov.Core().compile_model(steps.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(PHOTO)[0] - 300
    embedded = edit.embed(model, element="u8", layout="NHWC", resize=mode, swap_channels=True, mean=MEAN, scale=SCALE)
    assert str(embedded.inputs[0]) == "<x u8[1,?,?,3]>"
    np.testing.assert_allclose(run(embedded, PHOTO), expected, atol=1e-4)
    irload.save_model(embedded, tmp_path / "m.xml")
    theirs = ov.Core().compile_model(tmp_path / "m.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(PHOTO)[0] - 300
    np.testing.assert_allclose(theirs, expected, atol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_as_pillow_resizes(mode, model, tmp_path) -> None:
    embedded = edit.embed(model, element="u8", layout="NHWC", resize=f"{mode}_pillow")
    resized = Image.fromarray(PHOTO[0]).resize((16, 12), getattr(Image.Resampling, mode.upper()))
    expected = np.asarray(resized, np.float32).transpose(2, 0, 1)[None]
    irload.save_model(embedded, tmp_path / "m.xml")
    theirs = ov.Core().compile_model(tmp_path / "m.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(PHOTO)[0] - 300
    for actual in (run(embedded, PHOTO), theirs):  # Pillow rounds and clips after each axis
        np.testing.assert_allclose(np.clip(actual, 0, 255), expected, atol=1.6)


def test_steps_alone(model) -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 12, 16)).astype(np.float32)
    np.testing.assert_allclose(run(edit.embed(model, swap_channels=True), x), x[:, ::-1], atol=1e-4)
    scaled = run(edit.embed(model, "x", mean=0.5, scale=[1, 2, 4]), x)
    np.testing.assert_allclose(scaled[:, 2], (x[:, 2] - 0.5) / 4, atol=1e-4)
    bytes_in = edit.embed(model, element="u8")
    assert str(bytes_in.inputs[0].type) == "u8[1,3,12,16]"


@pytest.mark.parametrize(
    ("steps", "fact"),
    [
        ({}, "there is nothing to embed"),
        ({"input": "y", "mean": 1}, "there is no input named 'y'"),
        ({"mean": [1, 2]}, "mean has 2 numbers, input 'x' has 3 channels"),
        ({"element": "u9"}, "'u9' is not an element type"),
        ({"scale": [1, 0, 2]}, "scale must be nonzero and finite, found 1, 0, 2"),
        ({"mean": float("nan")}, "mean must be finite, found nan"),
        ({"resize": "area"}, "resize must be one of nearest, linear"),
        ({"layout": "NHW"}, "the layout NHW of 'x' must consist of the axes of NCHW"),
    ],
)
def test_refused_steps(model, steps, fact) -> None:
    with pytest.raises(irload.InputInvalid, match=fact):
        edit.embed(model, **steps)


def test_inputs_that_are_no_images(tmp_path) -> None:
    x = op.parameter([-1], np.int64, name="x")
    ov.serialize(ov.Model([op.abs(x)], [x]), tmp_path / "m.xml")
    model = irload.read_model(tmp_path / "m.xml")
    for steps, fact in (({"mean": 1}, "require a float input"), ({"swap_channels": True}, "channels are unknown")):
        with pytest.raises(irload.InputInvalid, match=fact):
            edit.embed(model, **steps)
    with pytest.raises(irload.InputInvalid, match="does not state a height and a width"):
        edit.embed(model, resize="linear")
    assert str(edit.embed(model, element="i32").inputs[0].type) == "i32[?]"
