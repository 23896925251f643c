"""Quantized models in integers: which steps are rewritten, and results within a quantum of those in floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.sanitizing import sanitizing
from models.ir import Ref
from tests.plan.graphs import PAIRS, Net

pytest.importorskip("llvmlite")

QUANTUM = 0.125


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "avx2")


class QuantizedNet(Net):
    """Layers of NNCF and of older tools: FakeQuantize of data, weights of i8 with one scale per channel."""

    def __init__(self, seed: int) -> None:
        Net.__init__(self, seed)
        self.rng = np.random.default_rng(seed)

    def quantized(self, x: Ref, low: float = 0.0, quantum: float | Array = QUANTUM, levels: int = 256) -> Ref:
        """A FakeQuantize with a zero point of −low."""
        ends = (np.asarray(end * quantum, np.float32) for end in (low, low + levels - 1) * 2)
        return self.op("FakeQuantize", x, *map(self.constant, ends), levels=levels, auto_broadcast="numpy")

    def stored(self, *shape: int, how: str = "compressed", largest: int = 127, channel: int = 0) -> Ref:
        """Weights with the scales of 2⁻⁶ and 2⁻⁷."""
        whole = self.rng.integers(-largest, largest + 1, shape)
        scale = (0.5 ** self.rng.integers(6, 8, shape[channel])).astype(np.float32)
        scale = scale.reshape([-1 if k == channel else 1 for k in range(len(shape))])
        if how == "fake":  # the levels of u8, as the Model Optimizer stores them
            data = self.op("Convert", self.constant((whole + 127).astype(np.uint8)), destination_type="f32")
            ends = (0.0, 254.0, -127 * scale, 127 * scale)
            ends = (self.constant(np.asarray(end, np.float32)) for end in ends)
            return self.op("FakeQuantize", data, *ends, levels=255, auto_broadcast="numpy")
        data = self.op("Convert", self.constant(whole.astype(np.int8)), destination_type="f32")
        if how == "zero point":
            data = self.op("Subtract", data, self.constant(np.zeros_like(scale)))
        return self.op("Multiply", data, self.constant(scale))


def conv(net: QuantizedNet, x: Ref, weights: Ref, type: str = "Convolution", pads: int = 0, strides: int = 1) -> Ref:
    """A convolution of two axes."""
    given = {**PAIRS, "pads_begin": f"{pads},{pads}", "pads_end": f"{pads},{pads}", "strides": f"{strides},{strides}"}
    return net.op(type, x, weights, **given)


def small(seed: int, channels: int, kernel: int, how: str, low: float, largest: int = 127) -> Model:
    """A chain with a residual: two convolutions, a sum, a ReLU, a pooling and a product of vectors."""
    net = QuantizedNet(seed)
    x = net.quantized(net.input(1, channels, 11, 11), low)
    pads = kernel // 2
    y = conv(net, x, net.stored(24, channels, kernel, kernel, how=how, largest=largest), pads=pads)
    y = net.op("Add", y, net.constant(np.ones((1, 24, 1, 1), np.float32)))
    y = net.quantized(net.op("ReLU", y), 0.0, 0.5)
    z = conv(net, y, net.stored(24, 24, 1, 1, how=how, largest=largest))
    z = net.quantized(net.op("Add", net.quantized(z, -128, 4.0), y), -100, 4.0)
    pool = {"kernel": "2,2", "rounding_type": "floor", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    z = net.op("MaxPool", z, **pool)
    w = net.op("Reshape", z, net.constant([1, -1]), special_zero=False)
    return net.model(net.op("MatMul", w, net.stored(10, 24 * 25, how=how), transpose_a=False, transpose_b=True))


def depthwise(seed: int, low: float) -> Model:
    """A depthwise convolution of data with one scale per channel."""
    net = QuantizedNet(seed)
    quantum = (2.0 ** net.rng.integers(-4, 0, (1, 20, 1, 1))).astype(np.float32)
    x = net.quantized(net.input(2, 20, 9, 12), low, quantum)
    w = net.op("Reshape", net.stored(20, 1, 3, 3), net.constant([20, 1, 1, 3, 3]), special_zero=False)
    return net.model(conv(net, x, w, "GroupConvolution", 1))


def steps_of(model: Model, precision: str = "auto") -> str:
    """The explanation of a plan."""
    return irload.compile_model(model, precision=precision).explain()  # type: ignore[arg-type]


def data_for(model: Model, seed: int) -> list[Array]:
    """Data in all levels, and beyond."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(p.outputs[0].type.shape.static) * 8).astype(np.float32) for p in model.parameters]


def both(model: Model, seed: int, *, threads: int = 1) -> tuple[Array, Array]:
    """The results in integers, checked by the sanitizer, and those of `compute`."""
    data = data_for(model, seed)
    with sanitizing():
        plan = irload.compile_model(model, threads, precision="auto")
        found = plan(data)[0]
        np.testing.assert_array_equal(plan(data)[0], found)
    return found, irload.compile_model(model, optimize=False)(data)[0]


@pytest.mark.parametrize("how", ["compressed", "zero point", "fake"])
@pytest.mark.parametrize(("kernel", "channels", "low"), [(1, 8, 0), (3, 3, -128), (3, 16, 0), (3, 24, -128), (1, 7, -7)])
@pytest.mark.parametrize("threads", [1, 2])
def test_chains_are_as_in_floats(how: str, kernel: int, channels: int, low: float, threads: int) -> None:
    """All scales are powers of two, so that floats are exact, but for Winograd's algorithm, which may move halves."""
    model = small(kernel, channels, kernel, how, low)
    found, wanted = both(model, 0, threads=threads)
    moved = "Winograd" in steps_of(model)
    np.testing.assert_allclose(found, wanted, 0, (5e-3 if moved else 1e-6) * np.abs(wanted).max())
    assert "int8 by" in steps_of(model)


@pytest.mark.parametrize("low", [0.0, -128.0])
def test_depthwise_with_a_scale_per_channel(low: float) -> None:
    found, wanted = both(depthwise(0, low), 0)
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-5)


@pytest.mark.parametrize("precision", ["f32", "auto"])
def test_f32_remains_f32(precision: str) -> None:
    assert ("int8" in steps_of(small(0, 8, 1, "fake", 0.0), precision)) == (precision == "auto")


def test_precise_excludes_integers() -> None:
    plan = irload.compile_model(small(0, 8, 1, "fake", 0.0), precision="auto", precise=True)
    assert "int8" not in plan.explain()


@pytest.mark.parametrize("low", [-127.95, -127.5, -3.3])
def test_zero_points_that_are_no_integers(low: float) -> None:
    """They are exact without padding; padding allows a quarter of a quantum."""
    net = QuantizedNet(0)
    model = net.model(conv(net, net.quantized(net.input(1, 8, 6, 6), low), net.stored(8, 8, 1, 1)))
    found, wanted = both(model, 1)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-4)
    padded = QuantizedNet(0)
    x = padded.quantized(padded.input(1, 8, 6, 6), low)
    model = padded.model(conv(padded, x, padded.stored(8, 8, 3, 3), pads=1))
    assert ("int8" in steps_of(model)) == (low == -127.95)


@pytest.mark.parametrize(
    "change",
    [
        lambda net, x: conv(net, net.quantized(x, 0.0, QUANTUM, 512), net.stored(8, 8, 1, 1)),
        lambda net, x: conv(net, net.quantized(x), net.weights(8, 8, 1, 1)),
        lambda net, x: conv(net, net.quantized(x), net.stored(8, 8, 1, 1, channel=1)),
        lambda net, x: conv(net, net.quantized(x, 0.0, np.full((1, 8, 1, 1), 0.1) + np.arange(8).reshape(1, 8, 1, 1)), net.stored(8, 8, 1, 1)),
        lambda net, x: conv(net, x, net.stored(8, 8, 1, 1)),
    ],
    ids=["512 levels", "weights of floats", "scales of inputs", "scales of data", "data of floats"],
)  # fmt: skip
def test_other_patterns_stay_in_floats(change: Callable[[QuantizedNet, Ref], Ref]) -> None:
    net = QuantizedNet(0)
    model = net.model(change(net, net.input(1, 8, 6, 6)))
    assert "int8" not in steps_of(model)
    found, wanted = both(model, 0)
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-4 * np.abs(wanted).max())


def test_concatenations_and_views_carry_bytes() -> None:
    net = QuantizedNet(0)
    x = net.input(1, 8, 6, 6)
    halves = [net.quantized(conv(net, net.quantized(x), net.stored(4, 8, 1, 1)), -128, 1.0) for _ in range(2)]
    y = net.transpose(net.reshape(net.concat(*halves), 1, 8, 36), 0, 2, 1)
    model = net.model(net.op("MatMul", y, net.stored(8, 6, channel=1), transpose_a=False, transpose_b=False))
    found, wanted = both(model, 0)
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-5)
    assert steps_of(model).count("int8 by") >= 1


@pytest.mark.parametrize("seed", range(8))
def test_openvino_agrees_to_a_quantum(seed: int) -> None:
    """Weights of 7 bits, so that its instructions do not saturate; each FakeQuantize adds at most a quantum."""
    rng = np.random.default_rng(seed)
    channels, kernel, low = int(rng.choice([8, 16])), int(rng.choice([1, 3])), float(rng.choice([0, -128]))
    net = QuantizedNet(seed)
    x = net.quantized(net.input(1, channels, 11, 11), low)
    y = conv(net, x, net.stored(24, channels, kernel, kernel, largest=63), pads=kernel // 2)
    model = net.model(net.quantized(y, -128, 1.0))
    data = data_for(model, seed)
    found = irload.compile_model(model, precision="auto")(data)[0]
    core = ov.Core()
    text = f'<net name="n" version="11">{net._graph.text()}</net>'  # pyright: ignore[reportPrivateUsage]
    runtime = core.compile_model(core.read_model(text.encode(), ov.Tensor(np.frombuffer(bytes(net._graph.blob), np.uint8))), "CPU")  # fmt: skip # pyright: ignore
    wanted = next(iter(runtime(data).values()))
    np.testing.assert_allclose(found, wanted, 0, 1.001)
    assert np.mean(found != wanted) < 0.01
