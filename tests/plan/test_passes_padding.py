"""Zeros of a Pad become the padding of the next convolution; other pads do not."""

from __future__ import annotations

import numpy as np
import pytest

from irload.plan.ir.steps import ConvStep
from tests.plan.exact import plan_of
from tests.plan.graphs import PAIRS, Net, agrees


def padded(
    begin: list[int], end: list[int], *value: float, mode: str = "constant", version: str = "opset1", **conv: object
) -> tuple[Net, object]:
    """A padded map and a 3×5 convolution of it."""
    net = Net()
    x = net.input(2, 3, 9, 11)
    fill = [net.constant(np.float32(v)) for v in value]
    y = net.op("Pad", x, net.constant(begin), net.constant(end), *fill, pad_mode=mode, version=version)
    channels = 3 + begin[1] + end[1]
    weights = net.weights(4, channels, 3, 5)
    return net, net.op("Convolution", y, weights, **{**PAIRS, **conv})


@pytest.mark.parametrize(
    ("begin", "end", "value"),
    [
        ([0, 0, 1, 2], [0, 0, 0, 1], ()),
        ([0, 0, 2, 4], [0, 0, 2, 4], (0.0,)),
        ([0, 0, 0, 0], [0, 0, 0, 3], (-0.0,)),
    ],
)
@pytest.mark.parametrize("more", [{}, {"strides": "2,2"}, {"dilations": "2,1", "pads_begin": "1,0", "pads_end": "0,0"}])
def test_zeros(begin: list[int], end: list[int], value: tuple[float, ...], more: dict[str, object]) -> None:
    net, y = padded(begin, end, *value, **more)
    model = net.model(y)  # type: ignore[arg-type]
    (step,) = plan_of(model, net.shapes).program.steps
    assert isinstance(step, ConvStep)
    assert [n.type for n in step.origin] == ["Pad", "Convolution"]
    agrees(model, net.shapes)


@pytest.mark.parametrize(
    ("begin", "end", "value", "mode", "version", "fused"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], (0.5,), "constant", "opset1", (0, 0, 0, 0)),
        ([0, 0, 1, 1], [0, 0, 1, 1], (), "reflect", "opset1", (0, 0, 0, 0)),
        ([0, 0, 1, 1], [0, 0, 1, 1], (), "edge", "opset1", (0, 0, 0, 0)),
        ([0, 1, 1, 1], [0, 0, 1, 1], (), "constant", "opset1", (1, 1, 1, 1)),
        ([1, 0, 1, 1], [0, 0, 1, 1], (), "constant", "opset1", (1, 1, 1, 1)),
        ([0, 0, 3, 1], [0, 0, 1, 1], (), "constant", "opset1", (0, 1, 0, 1)),
        ([0, 0, -1, 1], [0, 0, 1, 1], (), "constant", "opset12", (0, 1, 1, 1)),
    ],
)
def test_pads_that_are_preserved(
    begin: list[int], end: list[int], value: tuple[float, ...], mode: str, version: str, fused: tuple[int, ...]
) -> None:
    net, y = padded(begin, end, *value, mode=mode, version=version)
    model = net.model(y)  # type: ignore[arg-type]
    *before, conv = plan_of(model, net.shapes).program.steps
    assert before
    assert isinstance(conv, ConvStep)
    assert (*conv.pads_begin, *conv.pads_end) == fused
    agrees(model, net.shapes)


def test_zeros_of_a_concat() -> None:
    net = Net()
    zeros = net.constant(np.zeros((1, 3, 1, 6), np.float32))
    model = net.model(net.conv(net.concat(zeros, net.input(1, 3, 6, 6), zeros, axis=2), 3, 4, 3))
    (step,) = plan_of(model, net.shapes).program.steps
    assert isinstance(step, ConvStep)
    assert step.pads_begin[0] > step.pads_begin[1]
    agrees(model, net.shapes)


def test_a_padded_map_with_other_readers() -> None:
    net = Net()
    x = net.input(1, 3, 6, 6)
    y = net.op("Pad", x, net.constant([0, 0, 1, 1]), net.constant([0, 0, 1, 1]), pad_mode="constant")
    model = net.model(net.op("ReLU", y), net.conv(y, 3, 4, 3))
    agrees(model, net.shapes)
