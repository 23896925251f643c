"""Planes of volumes are convolved as images where no window spans several planes."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan.ir.steps import ConvStep
from irload.plan.sanitizing import sanitizing
from models import ir
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

DEFAULTS: dict[str, object] = {
    "strides": "1,1,1",
    "dilations": "1,1,1",
    "pads_begin": "0,1,1",
    "pads_end": "0,1,1",
}


def convolution(net: Net, x: ir.Ref, *weights: int, type: str = "Convolution", **geometry: object) -> ir.Ref:
    return net.op(type, x, net.weights(*weights), version="opset1", outputs=1, **{**DEFAULTS, **geometry})


def convolutions(net: Net, y: ir.Ref) -> list[ConvStep]:
    """The convolutions in the plan of a model, whose results are compared with `compute`."""
    model = net.model(y)
    agrees(model, net.shapes)
    return [s for s in plan_of(model, net.shapes).program.steps if isinstance(s, ConvStep)]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("epilogue", ["none", "bias", "number", "residual", "image", "planes"])
def test_planes_become_images(batch: int, epilogue: str) -> None:
    net = Net()
    y = convolution(net, net.op("ReLU", net.input(batch, 3, 4, 6, 5)), 7, 3, 1, 3, 3)
    operand = {
        "bias": lambda: net.weights(1, 7, 1, 1, 1),
        "number": lambda: net.constant(np.float32(3)),
        "residual": lambda: net.input(batch, 7, 4, 6, 5),
        "image": lambda: net.weights(7, 1, 6, 5),
        "planes": lambda: net.input(batch, 1, 4, 1, 1),
    }
    if epilogue != "none":
        y = net.op("ReLU", net.op("Add", y, operand[epilogue](), auto_broadcast="numpy"))
    (step,) = convolutions(net, y)
    assert step.inputs[1].shape == (1, 7, 3, 3, 3)
    assert step.output.shape == (4 * batch, 7, 6, 5)
    assert len(step.inputs) == (2 if epilogue in ("none", "number") else 3)


@pytest.mark.parametrize(
    ("weights", "geometry"),
    [
        ((7, 3, 2, 3, 3), {}),
        ((7, 3, 1, 3, 3), {"strides": "2,1,1"}),
        ((7, 3, 1, 3, 3), {"pads_begin": "1,1,1"}),
        ((7, 3, 1, 3, 3), {"pads_end": "1,1,1"}),
        ((7, 3, 1, 1, 1), {"pads_begin": "0,0,0", "pads_end": "0,0,0"}),
        ((3, 1, 1, 1, 3, 3), {"type": "GroupConvolution"}),
    ],
)
def test_other_windows_are_of_volumes(weights: tuple[int, ...], geometry: dict[str, object]) -> None:
    net = Net()
    (step,) = convolutions(net, convolution(net, net.input(1, 3, 4, 6, 5), *weights, **geometry))  # type: ignore[arg-type]
    assert len(step.strides) == 3


def test_an_operand_without_samples() -> None:
    net = Net()
    y = convolution(net, net.input(1, 3, 4, 6, 5), 7, 3, 1, 3, 3)
    (step,) = convolutions(net, net.op("Add", y, net.input(7, 4, 6, 5), auto_broadcast="numpy"))
    assert step.output.shape == (4, 7, 6, 5)


def test_constants_that_differ_between_planes_keep_volumes() -> None:
    net = Net()
    y = convolution(net, net.input(1, 3, 4, 6, 5), 7, 3, 1, 3, 3)
    (step,) = convolutions(net, net.op("Add", y, net.weights(1, 1, 4, 1, 1), auto_broadcast="numpy"))
    assert len(step.strides) == 3


def test_strides_and_dilations_of_images() -> None:
    net = Net()
    y = convolution(net, net.input(1, 3, 4, 9, 8), 7, 3, 1, 2, 3, strides="1,2,3", dilations="5,3,1")
    (step,) = convolutions(net, y)
    assert (step.strides, step.dilations) == ((2, 3), (3, 1))


def test_one_plan_for_volumes_of_any_size() -> None:
    net = Net()
    model = net.model(net.op("ReLU", convolution(net, net.input(-1, 3, -1, -1, -1), 5, 3, 1, 3, 3)))
    with sanitizing(False):
        compiled, plain = irload.compile_model(model), irload.compile_model(model, optimize=False)
        for shape in ((1, 3, 4, 5, 6), (2, 3, 3, 7, 4), (1, 3, 1, 4, 4), (3, 3, 1, 2, 9), (1, 3, 6, 1, 1)):
            x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
            (actual,), (wanted,) = compiled(x).values(), plain(x).values()
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
