"""Convolutions of dynamic axes that lack one element for a window: no outputs with stride 1, as in OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.errors import ShapeMismatch
from irload.model import Model
from models import ir
from tests.harness.runtime import core
from tests.plan.graphs import Net

OPTIONS = [{}, {"jit": False}, {"optimize": False}]
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled kernels, if they are installed."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")


def convolved(net: Net, x: ir.Ref, type: str, kernel: int, **attributes: Any) -> ir.Ref:
    """Channels 2 → 4 over one spatial axis, then a bias and ReLU."""
    weights = net.weights(*((4, 2) if type == "Convolution" else (2, 2, 1)), kernel)
    how = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"} | attributes
    return net.op("ReLU", net.op("Add", net.op(type, x, weights, **how), net.weights(1, 4, 1)))


def model_of(type: str, kernel: int, *, size: int = -1, **attributes: Any) -> Model:
    net = Net()
    return net.model(convolved(net, net.input(1, 2, size), type, kernel, **attributes))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("type", ["Convolution", "GroupConvolution"])
@pytest.mark.parametrize(
    ("kernel", "attributes", "size"),
    [
        (1, {}, 0),
        (3, {}, 2),
        (3, {"auto_pad": "valid"}, 2),
        (2, {"dilations": "3"}, 3),
        (4, {"pads_begin": "1", "pads_end": "1"}, 1),
        (3, {"auto_pad": "same_upper", "strides": "2"}, 0),
    ],
    ids=str,
)
def test_one_element_is_missing(
    type: str, kernel: int, attributes: dict[str, str], size: int, options: dict[str, bool], tmp_path: Path
) -> None:
    model = model_of(type, kernel, **attributes)
    irload.save_model(model, tmp_path / "model.xml")
    runtime = core().compile_model(tmp_path / "model.xml", "CPU", EXACT)
    compiled = irload.compile_model(model, 1, **options)
    for length in (9, size, 12, size, size + 1, 10):
        x = np.random.default_rng(length).standard_normal((1, 2, length)).astype(np.float32)
        actual, expected = compiled(x)[0], runtime([x])[0]
        assert actual.shape == expected.shape
        assert (actual.size == 0) == (length == size)
        np.testing.assert_allclose(actual, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("type", ["Convolution", "GroupConvolution"])
@pytest.mark.parametrize(
    ("kernel", "attributes", "size", "span", "padded"),
    [
        (3, {}, 1, 3, 1),
        (2, {}, 0, 2, 0),
        (3, {"strides": "2"}, 2, 3, 2),
        (1, {"strides": "2"}, 0, 1, 0),
        (
            2,
            {"dilations": "4", "pads_end": "1"},
            2,
            5,
            3,
        ),
    ],
    ids=str,
)
def test_more_is_missing_or_the_stride_is_larger(
    type: str,
    kernel: int,
    attributes: dict[str, str],
    size: int,
    span: int,
    padded: int,
    options: dict[str, bool],
    tmp_path: Path,
) -> None:
    model = model_of(type, kernel, **attributes)
    irload.save_model(model, tmp_path / "model.xml")
    runtime = core().compile_model(tmp_path / "model.xml", "CPU", EXACT)
    compiled = irload.compile_model(model, 1, **options)
    x = np.zeros((1, 2, size), np.float32)
    message = f"spans {span} elements on spatial axis 0, more than the padded input's {padded}"
    for length in (9, 10):  # later shapes share a plan
        with pytest.raises(RuntimeError):
            runtime([x])
        with pytest.raises(ShapeMismatch, match=message):
            compiled(x)
        assert compiled(np.zeros((1, 2, length), np.float32))[0].size


@pytest.mark.parametrize("type", ["Convolution", "GroupConvolution"])
def test_a_size_that_the_model_states_is_an_error(type: str) -> None:
    """OpenVINO does not build this layer."""
    with pytest.raises(ShapeMismatch, match="more than the padded input's 2"):
        model_of(type, 3, size=2)
    with pytest.raises(ShapeMismatch, match="more than the padded input's 2"):
        model_of(type, 3).reshape([1, 2, 2])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_axis_of_two(options: dict[str, bool]) -> None:
    net = Net()
    compiled = irload.compile_model(net.model(net.conv(net.input(1, 2, -1, -1), 2, 4, 3, strides="1,2")), 1, **options)
    for height, width, expected in ((2, 5, (1, 4, 0, 2)), (7, 9, (1, 4, 5, 4)), (2, 8, (1, 4, 0, 3))):
        assert compiled(np.zeros((1, 2, height, width), np.float32))[0].shape == expected
    with pytest.raises(ShapeMismatch, match="spatial axis 1"):
        compiled(np.zeros((1, 2, 7, 2), np.float32))


def filtered(kernel: int) -> Model:
    """A convolution of the columns whose sum is positive, and the sums of its rows."""
    net = Net()
    x = net.input(1, 2, 6)
    positive = net.op("Greater", net.op("ReduceSum", x, net.constant([0, 1])), net.constant(np.float32(0)))
    columns = net.op("Squeeze", net.op("NonZero", positive, version="opset3", output_type="i64"), net.constant([0]))
    y = convolved(net, net.op("Gather", x, columns, net.constant(2)), "Convolution", kernel)
    return net.model(y, net.op("ReduceSum", y, net.constant([2]), keep_dims=True))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kernel", [1, 2])
def test_after_a_filter(kernel: int, options: dict[str, bool], tmp_path: Path) -> None:
    """The inputs are static, and the number of columns depends on values."""
    model = filtered(kernel)
    irload.save_model(model, tmp_path / "model.xml")
    runtime = core().compile_model(tmp_path / "model.xml", "CPU", EXACT)
    compiled = irload.compile_model(model, 1, **options)
    for chosen in (4, kernel - 1, 6, kernel - 1, 2):
        x = np.random.default_rng(chosen).random((1, 2, 6)).astype(np.float32)
        x *= np.where(np.arange(6) < chosen, 1, -1)
        actual, expected = list(compiled(x).values()), list(runtime([x]).values())
        assert (actual[0].size == 0) == (chosen == kernel - 1)
        for ours, theirs in zip(actual, expected, strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)
    if kernel == 2:
        with pytest.raises(ShapeMismatch, match="spans 2 elements on spatial axis 0, more than the padded input's 0"):
            compiled(-np.ones((1, 2, 6), np.float32))
