"""Shapes of convolutions of partly known inputs, the specification's examples, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, TypeMismatch
from tests.harness.direct import computed, operation

ONEDNN = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}


def f32(text: str) -> TensorType:
    return TensorType(et.f32, Shape.parse(text))


@pytest.mark.parametrize(
    ("type", "version", "attributes", "inputs", "expected"),
    [
        # the specification's examples
        ("Convolution", "opset1", {"pads_begin": (2,), "pads_end": (2,)}, ["1,5,128", "16,5,4"], "1,16,129"),
        (
            "Convolution",
            "opset1",
            {"pads_begin": (2, 2), "pads_end": (2, 2)},
            ["1,3,224,224", "64,3,5,5"],
            "1,64,224,224",
        ),
        (
            "Convolution",
            "opset1",
            {"pads_begin": (2, 2, 2), "pads_end": (2, 2, 2), "strides": (3, 3, 3)},
            ["1,7,320,320,320", "32,7,3,3,3"],
            "1,32,108,108,108",
        ),
        (
            "ConvolutionBackpropData",
            "opset1",
            {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)},
            ["1,20,224,224", "20,10,3,3"],
            "1,10,447,447",
        ),
        (
            "ConvolutionBackpropData",
            "opset1",
            {"strides": (3, 3), "output_padding": (2, 2)},
            ["1,20,2,2", "20,10,3,3"],
            "1,10,8,8",
        ),
        # partly known inputs
        ("Convolution", "opset1", {}, ["...", "8,?,3,3"], "?,8,1..,1.."),
        ("Convolution", "opset1", {}, ["2..4,3,8..16,?", "..."], "2..4,?,1..16,1.."),
        ("Convolution", "opset1", {"strides": (2, 1)}, ["...", "..."], "?,?,1..,1.."),
        ("Convolution", "opset1", {}, ["...", "..."], "..."),
        ("Convolution", "opset1", {"strides": (2,), "auto_pad": "same_upper"}, ["1,1,5..8", "1,1,?"], "1,1,3..4"),
        ("GroupConvolution", "opset1", {}, ["1,?,8,8", "4,2,3,1,1"], "1,8,8,8"),
        ("GroupConvolution", "opset1", {}, ["1,12,8", "?,2,3,1"], "1,8,8"),
        ("GroupConvolutionBackpropData", "opset1", {}, ["1,12,8", "?,3,2,1"], "1,8,8"),
        ("Convolution", "onednn", ONEDNN, ["?,8,9,3", "3,3,3,16"], "?,6,7,16"),
        ("Convolution", "onednn", ONEDNN, ["...", "..."], "?,1..,1..,?"),
        ("DeformableConvolution", "opset8", {}, ["...", "2,18,8..9,?", "4,?,3,3"], "2,4,1..,1.."),
    ],
)
def test_shapes(type: str, version: str, attributes: dict[str, Any], inputs: list[str], expected: str) -> None:
    inferred = operation(type, version, **attributes).infer(*map(f32, inputs))
    assert str(inferred) == f"f32[{expected}]"


@pytest.mark.parametrize(
    ("type", "version", "attributes", "inputs", "error", "message"),
    [
        ("Convolution", "opset1", {}, ["1,3,8", "4,2,3"], ShapeMismatch, "data has 3 channels, filters take 2"),
        ("Convolution", "opset1", {}, ["1,3,8", "4,3,3,3"], ShapeMismatch, "same number of spatial axes"),
        ("Convolution", "opset1", {}, ["1,3", "4,3"], ShapeMismatch, "rank 3, 4 or 5"),
        ("Convolution", "opset1", {}, ["1,3,2", "4,3,3"], ShapeMismatch, "spans 3 elements on spatial axis 0"),
        ("Convolution", "opset1", {"auto_pad": "same_upper"}, ["1,3,2", "4,3,0"], ShapeMismatch, "must not be empty"),
        ("Convolution", "opset1", {"strides": (1, 1)}, ["1,3,8", "4,3,3"], AttributeInvalid, "attribute strides"),
        ("Convolution", "opset1", {"pads_end": (1, 1)}, ["1,3,8", "4,3,3"], AttributeInvalid, "attribute pads_end"),
        ("GroupConvolution", "opset1", {}, ["1,5,8", "2,1,2,3"], ShapeMismatch, "2 groups of 2"),
        ("GroupConvolution", "opset1", {}, ["1,4,8", "4,1,3"], ShapeMismatch, "1 to 3 spatial axes after 3"),
        ("ConvolutionBackpropData", "opset1", {}, ["1,3,8", "2,4,3"], ShapeMismatch, "data has 3 channels"),
        ("ConvolutionBackpropData", "opset1", {}, ["1,3,8", "3,4,3", "2"], TypeMismatch, "integer type, found f32"),
        (
            "ConvolutionBackpropData",
            "opset1",
            {"pads_begin": (9,), "pads_end": (9,)},
            ["1,3,8", "3,4,3"],
            ShapeMismatch,
            "crop more",
        ),
        (
            "DeformableConvolution",
            "opset1",
            {"group": 2},
            ["1,3,8,8", "1,18,6,6", "4,1,3,3"],
            ShapeMismatch,
            "2 groups",
        ),
        ("DeformableConvolution", "opset1", {}, ["1,2,8,8", "1,17,6,6", "4,2,3,3"], ShapeMismatch, "18 channels"),
        ("DeformableConvolution", "opset1", {}, ["1,2,8,8", "1,18,5,6", "4,2,3,3"], ShapeMismatch, "spatial axes"),
        ("DeformableConvolution", "opset1", {}, ["2,2,8,8", "1,18,6,6", "4,2,3,3"], ShapeMismatch, "agree in batch"),
        (
            "DeformableConvolution",
            "opset8",
            {},
            ["1,2,8,8", "1,18,6,6", "4,2,3,3", "1,8,6,6"],
            ShapeMismatch,
            "mask must have 9 channels",
        ),
        ("BinaryConvolution", "opset1", {}, ["1,2,8,8", "4,2,3,3"], TypeMismatch, "type u1, found f32"),
        (
            "Convolution",
            "onednn",
            ONEDNN | {"groups": 2},
            ["1,8,8,3", "1,1,2,4"],
            ShapeMismatch,
            "divisible by groups 2",
        ),
        ("Convolution", "onednn", ONEDNN | {"groups": 2}, ["1,8,8,4", "1,1,4,4"], ShapeMismatch, "2 groups of 4"),
        ("Convolution", "onednn", ONEDNN, ["1,8,8,4", "1,1,4,6", "5"], ShapeMismatch, "6 out-channels"),
        ("Convolution", "onednn", ONEDNN, ["1,8,4", "1,4,6"], AttributeInvalid, "attribute strides"),
    ],
)
def test_errors(
    type: str, version: str, attributes: dict[str, Any], inputs: list[str], error: type[IRError], message: str
) -> None:
    with pytest.raises(error, match=message):
        operation(type, version, **attributes).infer(*map(f32, inputs))


@pytest.mark.parametrize(
    ("type", "version", "attributes"),
    [
        ("Convolution", "opset1", {"strides": (0,)}),
        ("Convolution", "opset1", {"pads_begin": (-1,)}),
        ("Convolution", "opset1", {"auto_pad": "notset"}),
        ("Convolution", "onednn", ONEDNN | {"dilations": (1,)}),
        ("Convolution", "onednn", ONEDNN | {"groups": 0}),
        ("Convolution", "onednn", {k: v for k, v in ONEDNN.items() if k != "pads_end"}),
        ("DeformableConvolution", "opset1", {"deformable_group": 0}),
    ],
)
def test_attributes_that_are_refused(type: str, version: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(AttributeInvalid):
        operation(type, version, **attributes)


@pytest.mark.parametrize(("element", "kind"), [(et.i32, "i32"), (et.f64, "f64"), (et.boolean, "boolean")])
def test_onednn_takes_three_element_types(element: ElementType, kind: str) -> None:
    with pytest.raises(TypeMismatch, match=f"f32, f16 or bf16, found {kind}"):
        operation("Convolution", "onednn", **ONEDNN).infer(
            TensorType(element, Shape(1, 8, 8, 4)), TensorType(element, Shape(1, 1, 4, 6))
        )


def test_an_empty_batch() -> None:
    (output,) = computed("Convolution", "opset1", np.zeros((0, 2, 5), np.float32), np.zeros((3, 2, 2), np.float32))
    assert output.shape == (0, 3, 4)


def test_large_convolutions_are_cut_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    data, filters = rng.standard_normal((2, 4, 9, 8)), rng.standard_normal((3, 4, 3, 3))
    (whole,) = computed("Convolution", "opset1", data, filters, pads_begin=(1, 0), pads_end=(1, 0))
    monkeypatch.setattr("irload.ops.convolution.forward.BLOCK", 500)
    (blocks,) = computed("Convolution", "opset1", data, filters, pads_begin=(1, 0), pads_end=(1, 0))
    np.testing.assert_allclose(blocks, whole)
