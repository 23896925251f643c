"""Columns of a transposed convolution are computed as channels where the kernel is as wide as the stride."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan.ir.steps import ConvTransposeStep
from irload.plan.sanitizing import sanitizing
from models import ir
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees


def enlarged(net: Net, x: ir.Ref, *weights: int, type: str = "ConvolutionBackpropData", **geometry: object) -> ir.Ref:
    """A transposed convolution with random weights; along unnamed axes the kernel is as wide as the stride."""
    rank = len(weights) - (3 if type.startswith("Group") else 2)
    kernel = weights[-rank:]
    defaults: dict[str, object] = {"strides": ",".join(map(str, kernel)), "dilations": ",".join("1" * rank)}
    pads = {name: ",".join("0" * rank) for name in ("pads_begin", "pads_end")}
    return net.op(type, x, net.weights(*weights), version="opset1", outputs=1, **{**defaults, **pads, **geometry})


def transposed(net: Net, y: ir.Ref) -> list[ConvTransposeStep]:
    """The transposed convolutions in the plan of a model, whose results are compared with `compute`."""
    model = net.model(y)
    agrees(model, net.shapes)
    return [s for s in plan_of(model, net.shapes).program.steps if isinstance(s, ConvTransposeStep)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kernel", [(3,), (2, 2), (4, 3), (2, 3, 2)])
@pytest.mark.parametrize("epilogue", ["none", "bias", "number", "residual", "constant", "rows"])
def test_columns_become_channels(kernel: tuple[int, ...], epilogue: str) -> None:
    net = Net()
    sizes = (5, 4, 6)[: len(kernel)]
    x = net.input(2, 3, *sizes)
    y = enlarged(net, x, 3, 4, *kernel)
    out = [n * k for n, k in zip(sizes, kernel, strict=True)]
    operand = {
        "bias": lambda: net.weights(1, 4, *(1,) * len(kernel)),
        "number": lambda: net.constant(np.float32(3)),
        "residual": lambda: net.input(2, 4, *out),
        "constant": lambda: net.weights(2, 4, *out),
        "rows": lambda: net.weights(1, 1, *out[:-1], 1),
    }
    if epilogue != "none":
        y = net.op("ReLU", net.op("Add", y, operand[epilogue](), auto_broadcast="numpy"))
    (step,) = transposed(net, y)
    assert step.strides == (*kernel[:-1], 1)
    assert step.output.shape == (2, 4 * kernel[-1], *out[:-1], sizes[-1])


@pytest.mark.parametrize(
    ("weights", "geometry"),
    [
        ((3, 4, 2, 3), {"strides": "2,2"}),  # columns overlap
        ((3, 4, 2, 2), {"strides": "2,3"}),  # some columns are 0
        ((3, 4, 2, 2), {"pads_begin": "0,1", "pads_end": "0,0"}),
        ((3, 4, 2, 2), {"pads_end": "0,1"}),
        ((3, 4, 2, 2), {"dilations": "1,2", "pads_end": "0,1"}),
        ((3, 4, 2, 1), {}),
        ((3, 1, 2, 2, 2), {"type": "GroupConvolutionBackpropData"}),
    ],
)
def test_other_geometries_keep_their_columns(weights: tuple[int, ...], geometry: dict[str, str]) -> None:
    net = Net()
    rank = len(weights) - 2 if "type" not in geometry else len(weights) - 3
    (step,) = transposed(net, enlarged(net, net.input(2, 3, *(5, 6)[:rank]), *weights, **geometry))
    assert step.inputs[1].shape[-1] == weights[-1]


@pytest.mark.parametrize("shape", [(1, 4, 6, 12), (12,)])
def test_operands_that_differ_between_columns_keep_them(shape: tuple[int, ...]) -> None:
    net = Net()
    y = enlarged(net, net.input(1, 3, 3, 6), 3, 4, 2, 2)
    constant = net.weights(1, 1, 1, 12) if shape == (12,) else net.input(1, 1, 6, 12)
    (step,) = transposed(net, net.op("Add", y, constant, auto_broadcast="numpy"))
    assert step.strides[-1] == 2


def test_one_plan_for_images_of_any_size() -> None:
    net = Net()
    y = net.op("ReLU", enlarged(net, net.input(-1, 3, -1, -1), 3, 4, 2, 2))
    model = net.model(y)
    with sanitizing(False):
        compiled, plain = irload.compile_model(model), irload.compile_model(model, optimize=False)
        for n, height, width in ((1, 5, 6), (2, 4, 9), (1, 1, 1), (3, 7, 2)):
            x = np.random.default_rng(height).standard_normal((n, 3, height, width)).astype(np.float32)
            (actual,), (wanted,) = compiled(x).values(), plain(x).values()
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
