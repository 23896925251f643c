"""Creates four small models of Pad and Convolution variants, each with a worked example.

    python models/make_seeds.py

pad_openvino and pad_ngraph contain the examples in the specifications; conv_openvino and conv_onednn run one
convolution under both specifications, with a stride of 2, where their `same_upper` differ. Expected values are
literals, or computed here element by element from the definition.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ir import Graph, save, save_example

HERE = Path(__file__).parent


def pad_openvino() -> None:
    """One tensor, padded in all four modes."""
    g = Graph()
    data = g.parameter("data", "f32", [3, 4])
    begin, end = g.constant([0, 1], "pads_begin"), g.constant([2, 3], "pads_end")
    for mode in ("constant", "edge", "reflect", "symmetric"):
        (padded,) = g.layer(
            "Pad",
            [data, begin, end],
            [("f32", [5, 8])],
            name=f"pad_{mode}",
            names=[mode],
            attributes={"pad_mode": mode},
        )
        g.result(padded)
    save(g, HERE / "pad_openvino", "pad_openvino")
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    columns = {
        "edge": [0, 0, 1, 2, 3, 3, 3, 3],
        "reflect": [1, 0, 1, 2, 3, 2, 1, 0],
        "symmetric": [0, 0, 1, 2, 3, 3, 2, 1],
    }
    rows = {"edge": [0, 1, 2, 2, 2], "reflect": [0, 1, 2, 1, 0], "symmetric": [0, 1, 2, 2, 1]}
    constant = np.zeros((5, 8), np.float32)
    constant[:3, 1:5] = x
    save_example(HERE / "pad_openvino", [x], [constant, *(x[np.ix_(rows[m], columns[m])] for m in rows)])


def pad_ngraph() -> None:
    """Padding before, after and between the elements: the example with 42."""
    g = Graph()
    arg = g.parameter("arg", "f32", [3, 3])
    value = g.parameter("arg_pad_value", "f32", [])
    attributes = {"padding_below": "1,2", "padding_above": "1,0", "padding_interior": "1,2", "pad_mode": "constant"}
    (padded,) = g.layer(
        "Pad", [arg, value], [("f32", [7, 9])], version="ngraph", name="pad", names=["padded"], attributes=attributes
    )
    g.result(padded)
    save(g, HERE / "pad_ngraph", "pad_ngraph")
    expected = np.full((7, 9), 42, np.float32)
    expected[1:6:2, 2::3] = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    x = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    save_example(HERE / "pad_ngraph", [x, np.float32(42)], [expected])


IMAGE = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
FILTER = np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]], np.float32).reshape(1, 1, 3, 3)
BIAS = np.array([0.5], np.float32)


def convolved(begin: int, size: int, stride: int) -> np.ndarray:
    """Convolve IMAGE with FILTER, from the definition: zeros outside, `begin` of them before each axis."""
    out = np.zeros((1, 1, size, size), np.float32)
    for y, x, i, j in np.ndindex(size, size, 3, 3):
        row, column = y * stride - begin + i, x * stride - begin + j
        if 0 <= row < 6 and 0 <= column < 6:
            out[0, 0, y, x] += IMAGE[0, 0, row, column] * FILTER[0, 0, i, j]
    return out


def conv_openvino() -> None:
    """same_upper gives ceil(6 / 2) = 3 outputs: (3 − 1)·2 + 3 − 6 = 1 zero per axis, at its end."""
    g = Graph()
    image = g.parameter("image", "f32", [1, 1, 6, 6])
    attributes = {
        "strides": "2,2",
        "dilations": "1,1",
        "pads_begin": "0,0",
        "pads_end": "0,0",
        "auto_pad": "same_upper",
    }
    (out,) = g.layer(
        "Convolution",
        [image, g.constant(FILTER, "filter")],
        [("f32", [1, 1, 3, 3])],
        name="conv",
        names=["features"],
        attributes=attributes,
    )
    g.result(out)
    save(g, HERE / "conv_openvino", "conv_openvino")
    save_example(HERE / "conv_openvino", [IMAGE], [convolved(begin=0, size=3, stride=2)])


def conv_onednn() -> None:
    """same_upper keeps the size before striding: 3 − 1 = 2 zeros per axis, one at each end. Channels last, a bias."""
    g = Graph()
    image = g.parameter("image", "f32", [1, 6, 6, 1])
    attributes = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    attributes |= {"auto_pad": "same_upper", "data_format": "NXC", "filter_format": "XIO"}
    (out,) = g.layer(
        "Convolution",
        [image, g.constant(FILTER.transpose(2, 3, 1, 0).copy(), "filter"), g.constant(BIAS, "bias")],
        [("f32", [1, 3, 3, 1])],
        version="onednn",
        name="conv",
        names=["features"],
        attributes=attributes,
    )
    g.result(out)
    save(g, HERE / "conv_onednn", "conv_onednn")
    expected = convolved(begin=1, size=3, stride=2).transpose(0, 2, 3, 1) + BIAS
    save_example(HERE / "conv_onednn", [IMAGE.transpose(0, 2, 3, 1).copy()], [expected.astype(np.float32)])


if __name__ == "__main__":
    for make in (pad_openvino, pad_ngraph, conv_openvino, conv_onednn):
        make()
