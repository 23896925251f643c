"""Convolutions, poolings and resizing."""

from __future__ import annotations

import numpy as np

from tests.plan.graphs import PAIRS
from tests.plan.lowering.nodes import FOUR, SCALES, Build, interpolate, of


def adaptive(type: str, shape: tuple[int, ...], counts: tuple[int, ...]) -> Build:
    """An adaptive pooling with `counts[i]` windows along spatial axis i."""
    more = {} if type == "AdaptiveAvgPool" else {"outputs": 2, "index_element_type": "i64"}
    return lambda net: net.ops(type, net.input(*shape), net.constant(list(counts)), version="opset8", **more)[0]


CASES: dict[str, tuple[Build, list[str]]] = {
    "Interpolate-1": (
        interpolate(
            "opset1",
            (1, 2, 4, 5),
            [8, 7],
            axes="2,3",
            mode="linear",
            align_corners=False,
            antialias=False,
            pads_begin="0",
            pads_end="0",
        ),
        ["banded matmul", "banded matmul"],
    ),
    "Interpolate-4, sizes": (
        interpolate("opset4", (1, 2, 4, 5), [8, 7], SCALES, [2, 3], **FOUR),
        ["banded matmul"] * 2,
    ),
    "Interpolate-4, scales": (
        interpolate("opset4", (1, 2, 4, 6), [1, 1], SCALES, [2, 3], **{**FOUR, "shape_calculation_mode": "scales"}),
        ["banded matmul"] * 2,
    ),
    "Interpolate-4, all axes": (
        interpolate("opset4", (1, 2, 4, 5), [1, 2, 8, 5], np.float32([1, 1, 2, 1]), **FOUR),
        ["banded matmul"],
    ),
    "Interpolate-4, nearest": (
        interpolate("opset4", (1, 2, 4, 5), [8, 10], SCALES, [2, 3], **{**FOUR, "mode": "nearest"}),
        ["by index"] * 2,
    ),
    "Interpolate-1 to nothing": (
        interpolate("opset1", (1, 2, 4, 5), [0, 2**31 - 1], axes="2,3", mode="area", align_corners=False),
        [],
    ),
    "Interpolate-4 that changes nothing": (interpolate("opset4", (1, 2, 4, 5), [4, 5], SCALES, [2, 3], **FOUR), []),
    "Interpolate-4 with pads": (
        interpolate("opset4", (1, 2, 4, 5), [8, 7], SCALES, [2, 3], **{**FOUR, "pads_begin": "0,0,1,0"}),
        ["compute"],
    ),
    "Interpolate-4, antialias": (
        interpolate("opset4", (1, 2, 8, 9), [4, 3], SCALES, [2, 3], **{**FOUR, "mode": "linear", "antialias": True}),
        ["banded matmul"] * 2,
    ),
    "Interpolate-4, antialias, one axis grows": (
        interpolate("opset4", (1, 2, 4, 9), [7, 3], SCALES, [2, 3], **{**FOUR, "mode": "linear", "antialias": True}),
        ["banded matmul"] * 2,
    ),
    "Interpolate-11, antialias of Pillow": (
        interpolate("opset11", (1, 2, 8, 5), [3, 7], [2, 3], **{**FOUR, "mode": "bicubic_pillow", "antialias": True}),
        ["banded matmul"] * 2,
    ),
    "Interpolate-11, sizes": (
        interpolate("opset11", (1, 2, 4, 5), [8, 7], [2, 3], **{**FOUR, "mode": "cubic"}),
        ["banded matmul"] * 2,
    ),
    "Interpolate-11, scales": (
        interpolate("opset11", (1, 2, 4, 6), SCALES, [2, 3], **{**FOUR, "shape_calculation_mode": "scales"}),
        ["banded matmul"] * 2,
    ),
    "Interpolate-11, all axes": (interpolate("opset11", (1, 2, 4, 5), [1, 3, 4, 5], **FOUR), ["banded matmul"]),
    "MaxPool": (
        of("MaxPool", 1, 2, 6, 6, kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0"),
        ["separable"],
    ),
    "MaxPool of a long window": (
        of("MaxPool", 1, 1, 1100, kernel="1025", strides="1", pads_begin="0", pads_end="0"),
        ["compute"],
    ),
    "MaxPool of the longest window": (
        of("MaxPool", 1, 1, 1100, kernel="1024", strides="1", pads_begin="0", pads_end="0"),
        ["separable"],
    ),
    "AdaptiveAvgPool of even windows": (adaptive("AdaptiveAvgPool", (1, 2, 6, 4), (3, 2)), ["separable"]),
    "AdaptiveAvgPool of all": (adaptive("AdaptiveAvgPool", (1, 2, 5), (1,)), ["separable"]),
    "AdaptiveAvgPool of windows that overlap": (adaptive("AdaptiveAvgPool", (1, 2, 7, 4), (3, 4)), ["banded matmul"]),
    "AdaptiveAvgPool of more windows than elements": (
        adaptive("AdaptiveAvgPool", (1, 2, 3, 4), (5, 3)),
        ["banded matmul"] * 2,
    ),
    "AdaptiveMaxPool of even windows": (adaptive("AdaptiveMaxPool", (1, 2, 6, 4), (3, 2)), ["separable"]),
    "AdaptiveMaxPool of windows that overlap": (adaptive("AdaptiveMaxPool", (1, 2, 7, 4), (3, 2)), ["compute"]),
    "MaxPool whose places are taken": (
        lambda net: net.op(
            "Add",
            *(
                net.op("Convert", o, destination_type="f32")
                for o in net.ops(
                    "MaxPool",
                    net.input(1, 2, 6),
                    version="opset8",
                    outputs=2,
                    kernel="2",
                    strides="2",
                    pads_begin="0",
                    pads_end="0",
                    dilations="1",
                    index_element_type="i64",
                    axis=0,
                )
            ),
        ),
        ["compute", "compute", "tiles"],
    ),
    "AvgPool": (
        of("AvgPool", 1, 2, 6, kernel="3", strides="2", pads_begin="1", pads_end="1", **{"exclude-pad": True}),
        ["separable"],
    ),
    "AvgPool that counts pads": (
        of("AvgPool", 1, 2, 6, kernel="3", strides="2", pads_begin="1", pads_end="1", **{"exclude-pad": False}),
        ["separable"],
    ),
    "GridSample": (
        lambda net: net.op(
            "GridSample",
            net.input(2, 3, 6, 6),
            net.input(2, 4, 5, 2),
            version="opset9",
            mode="bicubic",
            padding_mode="reflection",
            align_corners=True,
        ),
        ["compute"],
    ),
    "Convolution": (lambda net: net.conv(net.input(1, 3, 6, 6), 3, 4, 2), ["im2col"]),
    "Convolution of computed weights": (
        lambda net: net.op("Convolution", net.input(1, 3, 6, 6), net.input(4, 3, 2, 2), **PAIRS),
        ["compute"],
    ),
    "Convolution of computed weights at each position": (
        lambda net: net.op("Convolution", net.input(2, 3, 4, 5), net.input(7, 3, 1, 1), **PAIRS),
        ["batched matmul"],
    ),
    "Convolution of computed weights at each position, padded": (
        lambda net: net.op(
            "Convolution",
            net.input(2, 3, 3, 5),
            net.input(7, 3, 1, 1),
            **{**PAIRS, "pads_end": "2,0", "strides": "2,1"},
        ),
        ["compute"],
    ),
    "Convolution far apart": (
        lambda net: net.conv(net.input(1, 1, 3, 3), 1, 1, 2, dilations="2000000,1", pads_begin="2000000,0"),
        ["compute"],
    ),
    "transposed convolution of computed weights": (
        lambda net: net.op("ConvolutionBackpropData", net.input(1, 3, 6, 6), net.input(3, 4, 2, 2), **PAIRS),
        ["compute"],
    ),
    "transposed convolution to a shape": (
        lambda net: net.op(
            "ConvolutionBackpropData",
            net.input(1, 3, 6, 6),
            net.weights(3, 4, 3, 3),
            net.constant([13, 12]),
            strides="2,2",
            dilations="1,1",
            pads_begin="0,0",
            pads_end="0,0",
        ),
        ["matmul, then taps"],
    ),
}
