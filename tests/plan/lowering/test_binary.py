"""Binary networks: FakeQuantize with a threshold, and BinaryConvolution of its zeros and ones."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.plan.ir.steps import ConvStep
from models import ir
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

SHAPE = (1, 6, 9, 7)


def quantized(net: Net, x: ir.Ref, *, channels: int = 6, low: float = 0, high: float = 1) -> ir.Ref:
    """Two levels with one threshold per channel."""
    bound = np.random.default_rng(3).normal(0, 0.5, (1, channels, 1, 1)).astype(np.float32)
    levels = (net.constant(np.full((1, 1, 1, 1), level, np.float32)) for level in (low, high))
    return net.op(
        "FakeQuantize", x, net.constant(bound), net.constant(bound), *levels, levels=2, auto_broadcast="numpy"
    )


def steps(net: Net, y: ir.Ref) -> list[type]:
    """The kinds of steps of a plan for a result, which must agree with `compute`."""
    model = net.model(net.op("Multiply", y, net.constant(np.float32(0.5))))
    agrees(model, net.shapes)
    return [type(step) for step in plan_of(model, net.shapes).program.steps]


@pytest.mark.parametrize("channels", [1, 6])
@pytest.mark.parametrize("levels", [(0.0, 1.0), (-1.0, 1.0), (3.0, -2.0)])
def test_thresholds_are_compiled(channels: int, levels: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    model = net.model(quantized(net, net.input(*SHAPE), channels=channels, low=levels[0], high=levels[1]))
    x = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
    x[0, :, 0, :3] = np.inf, -np.inf, np.nan
    compiled, plain = irload.compile_model(model), irload.compile_model(model, optimize=False)
    assert "compute" not in [step.kernel for step in compiled.profile(x, 1)]
    np.testing.assert_array_equal(compiled(x)[0], plain(x)[0])


def binary(net: Net, x: ir.Ref, *, pad: int, value: float) -> ir.Ref:
    """A BinaryConvolution with random filters [5, 6, 3, 3]."""
    filters = net.codes(np.random.default_rng(4).integers(0, 2, (5, 6, 3, 3)).astype(np.uint8), et.u1)
    pads = {"pads_begin": f"{pad},0", "pads_end": f"0,{pad}"}
    window = {"strides": "2,1", "dilations": "1,2", **pads}
    return net.op("BinaryConvolution", x, filters, mode="xnor-popcount", pad_value=value, **window)


@pytest.mark.parametrize(("pad", "value"), [(0, 0), (0, 1), (1, 0), (2, 0)])
def test_binary_convolutions_are_convolutions(pad: int, value: float) -> None:
    net = Net()
    assert ConvStep in steps(net, binary(net, quantized(net, net.input(*SHAPE)), pad=pad, value=value))


@pytest.mark.parametrize("value", [1, -1])
def test_other_padding_is_computed(value: float) -> None:
    net = Net()
    assert ConvStep not in steps(net, binary(net, quantized(net, net.input(*SHAPE)), pad=1, value=value))


@pytest.mark.parametrize("levels", [(0.0, 2.0), (-1.0, 1.0)])
def test_other_data_is_compared(levels: tuple[float, float]) -> None:
    net = Net()
    x = quantized(net, net.input(*SHAPE), low=levels[0], high=levels[1])
    assert ConvStep not in steps(net, binary(net, x, pad=0, value=0))


@pytest.mark.parametrize("precision", ["f32", "auto"])
@pytest.mark.parametrize("pad", [0, 1])
def test_bits_are_multiplied_in_integers(pad: int, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results are exact, so at f32 as well. Other FakeQuantize layers remain in floats there."""
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    y = binary(net, quantized(net, net.input(*SHAPE)), pad=pad, value=0)
    bounds = [net.constant(np.float32(bound)) for bound in (-90, 37.5, -90, 37.5)]
    fake = net.op("FakeQuantize", y, *bounds, levels=256, auto_broadcast="numpy")
    model = net.model(y, net.op("ReLU", net.conv(fake, 5, 4, 3)))
    x = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
    compiled = irload.compile_model(model, 1, precision=precision)
    schedule = compiled.scheduled([port.output.type for port in compiled.inputs])
    assert schedule.part is not None
    products = [s for s in compiled.take(schedule.part).program.steps if isinstance(s, ConvStep)]
    assert [step.multiplies_integers for step in products] == [True, False]
    plain = irload.compile_model(model, optimize=False)
    np.testing.assert_array_equal(compiled(x)[0], plain(x)[0])
    if precision == "f32":
        np.testing.assert_allclose(compiled(x)[1], plain(x)[1], rtol=1e-5, atol=1e-4)
