"""The positions of windows: pads, auto_pad of OpenVINO and oneDNN, strides, dilations; computed by hand on 1..6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness.direct import computed

ONE_TO_SIX = np.arange(1, 7, dtype=np.float32)
ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [6, 9, 12, 15]),
        ({"strides": (2,)}, [6, 12]),
        ({"dilations": (2,)}, [9, 12]),
        ({"pads_begin": (1,), "pads_end": (1,)}, [3, 6, 9, 12, 15, 11]),
        ({"pads_begin": (2,)}, [1, 3, 6, 9, 12, 15]),
        ({"strides": (2,), "auto_pad": "same_upper"}, [6, 12, 11]),
        ({"strides": (2,), "auto_pad": "same_lower"}, [3, 9, 15]),
        ({"strides": (2,), "auto_pad": "valid", "pads_begin": (5,), "pads_end": (5,)}, [6, 12]),
        ({"auto_pad": "same_upper", "pads_begin": (5,), "pads_end": (5,)}, [3, 6, 9, 12, 15, 11]),
    ],
)
def test_openvino(attributes: dict[str, Any], expected: list[float]) -> None:
    (output,) = computed("Convolution", "opset1", ONE_TO_SIX.reshape(1, 1, 6), ONES.reshape(1, 1, 3), **attributes)
    np.testing.assert_array_equal(output, np.reshape(expected, (1, 1, -1)))


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, [6, 9, 12, 15]),
        ({"strides": (2,), "auto_pad": "same_upper"}, [3, 9, 15]),  # pads 1 and 1; OpenVINO's are 0 and 1
        ({"strides": (2,), "auto_pad": "same_lower"}, [3, 9, 15]),
        ({"strides": (3,), "auto_pad": "same_upper", "dilations": (2,)}, [4, 12]),  # pads 2 and 2
        ({"strides": (2,), "auto_pad": "valid", "pads_begin": (5,), "pads_end": (5,)}, [6, 12]),
        ({"strides": (2,), "pads_begin": (1,), "pads_end": (0,)}, [3, 9, 15]),
    ],
)
def test_onednn(attributes: dict[str, Any], expected: list[float]) -> None:
    attributes_ = {"strides": (1,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,)} | attributes
    (output,) = computed("Convolution", "onednn", ONE_TO_SIX.reshape(1, 6, 1), ONES.reshape(3, 1, 1), **attributes_)
    np.testing.assert_array_equal(output, np.reshape(expected, (1, -1, 1)))


@pytest.mark.parametrize(
    ("auto_pad", "expected"),
    [("same_upper", [12, 45]), ("same_lower", [1, 34])],
)
def test_onednn_pads_the_odd_element_at_the_named_end(auto_pad: str, expected: list[float]) -> None:
    # With kernel 2 the padding is one element. With stride 3 the windows are (1,2) and (4,5) for upper, (0,1) and (3,4)
    # for lower.
    (output,) = computed(
        "Convolution",
        "onednn",
        ONE_TO_SIX.reshape(1, 6, 1),
        np.array([10, 1], np.float32).reshape(2, 1, 1),
        strides=(3,),
        dilations=(1,),
        pads_begin=(0,),
        pads_end=(0,),
        auto_pad=auto_pad,
    )
    assert output.ravel().tolist() == expected


@pytest.mark.parametrize(
    ("data_format", "filter_format"), [("NXC", "XIO"), ("NXC", "OIX"), ("NCX", "XIO"), ("NCX", "OIX")]
)
def test_onednn_layouts_groups_and_bias(data_format: str, filter_format: str) -> None:
    # Two groups of one channel each and two filters each, of one element: every output is a product plus its bias.
    data = np.array([[[1, 2], [3, 4]]], np.float32)  # N, X, C
    filters = np.array([[[10, 100, 1, 2]]], np.float32)  # X, I, O
    data = data if data_format == "NXC" else np.moveaxis(data, -1, 1)
    filters = filters if filter_format == "XIO" else filters.transpose(2, 1, 0)
    attributes_ = {"strides": (1,), "dilations": (1,), "pads_begin": (0,), "pads_end": (0,), "groups": 2}
    formats = {"data_format": data_format, "filter_format": filter_format}
    bias = np.array([0.5, 0, 0, 7], np.float32)
    (output,) = computed("Convolution", "onednn", data, filters, bias, **attributes_, **formats)
    output = output if data_format == "NXC" else np.moveaxis(output, 1, -1)
    assert output.tolist() == [[[10.5, 100, 2, 11], [30.5, 300, 4, 15]]]


@pytest.mark.parametrize(
    ("attributes", "output_shape", "expected"),
    [
        ({}, None, [1, 10, 102, 20, 203, 30, 300]),
        ({"pads_begin": (1,)}, None, [10, 102, 20, 203, 30, 300]),
        ({"pads_end": (2,)}, None, [1, 10, 102, 20, 203]),
        ({"output_padding": (1,)}, None, [1, 10, 102, 20, 203, 30, 300, 0]),
        ({"auto_pad": "same_upper"}, None, [1, 10, 102, 20, 203, 30, 300]),
        ({"auto_pad": "same_upper"}, [6], [10, 102, 20, 203, 30, 300]),
        ({"auto_pad": "same_lower"}, [6], [1, 10, 102, 20, 203, 30]),
        ({"auto_pad": "same_lower"}, [4], [10, 102, 20, 203]),
        ({"auto_pad": "same_upper"}, [4], [102, 20, 203, 30]),
        ({"auto_pad": "same_upper", "output_padding": (1,)}, [5], [102, 20, 203, 30, 300]),
        ({"auto_pad": "same_lower", "output_padding": (1,)}, [6], [10, 102, 20, 203, 30, 300]),
        ({"pads_begin": (1,), "pads_end": (1,)}, [4], [10, 102, 20, 203]),
        ({"auto_pad": "valid"}, [8], [1, 10, 102, 20, 203, 30, 300, 0]),
    ],
)
def test_transposed(attributes: dict[str, Any], output_shape: list[int] | None, expected: list[float]) -> None:
    data = np.array([1, 2, 3], np.float32).reshape(1, 1, 3)
    filters = np.array([1, 10, 100], np.float32).reshape(1, 1, 3)
    asked = [] if output_shape is None else [np.array(output_shape)]
    # With stride 2 the outputs of neighbouring inputs overlap in one element: 1 10 100+2 20 200+3 30 300.
    (output,) = computed("ConvolutionBackpropData", "opset1", data, filters, *asked, strides=(2,), **attributes)
    assert output.ravel().tolist() == expected
