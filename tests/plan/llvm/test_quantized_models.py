"""Quantized models in integers: which steps are rewritten, and results within a quantum of f32 results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.options import Precision
from irload.plan.backends.llvm.target import Target
from irload.plan.sanitizing import sanitizing
from models.ir import Ref
from tests.plan.llvm.harness import DOTS, TILES
from tests.plan.llvm.quantized_net import QUANTUM, QuantizedNet, conv

pytest.importorskip("llvmlite")

RAMP = np.arange(0.1, 8, 1).reshape(1, 8, 1, 1)
"""A quantum per channel."""


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "avx2")


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
    pool: dict[str, Any] = {
        "kernel": "2,2",
        "rounding_type": "floor",
        "strides": "2,2",
        "pads_begin": "0,0",
        "pads_end": "0,0",
    }
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


def steps_of(model: Model, precision: Precision = "auto", threads: int = 1) -> str:
    """The explanation of a plan."""
    return irload.compile_model(model, threads, precision=precision).explain()


def data_for(model: Model, seed: int) -> list[Array]:
    """Data in all levels, and beyond."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(p.outputs[0].type.shape.static) * 8).astype(np.float32) for p in model.parameters]


def both(model: Model, seed: int, *, threads: int = 1) -> tuple[Array, Array]:
    """The results in integers, checked by the sanitizer, and the results of `compute`."""
    data = data_for(model, seed)
    with sanitizing():
        plan = irload.compile_model(model, threads, precision="auto")
        output = plan(data)[0]
        np.testing.assert_array_equal(plan(data)[0], output)
    return output, irload.compile_model(model, optimize=False)(data)[0]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("how", ["compressed", "zero point", "fake"])
@pytest.mark.parametrize(
    ("kernel", "channels", "low"), [(1, 8, 0), (3, 3, -128), (3, 16, 0), (3, 24, -128), (1, 7, -7)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_chains_are_as_in_floats(how: str, kernel: int, channels: int, low: float, threads: int) -> None:
    """All scales are powers of two, so results in floats are exact, except halves that Winograd's rounding may move."""
    model = small(kernel, channels, kernel, how, low)
    output, wanted = both(model, 0, threads=threads)
    explained = steps_of(model, threads=threads)
    moved = "Winograd" in explained
    np.testing.assert_allclose(output, wanted, 0, (5e-3 if moved else 1e-6) * np.abs(wanted).max())
    assert "int8 by" in explained


@pytest.mark.parametrize("low", [0.0, -128.0])
def test_depthwise_with_a_scale_per_channel(low: float) -> None:
    output, wanted = both(depthwise(0, low), 0)
    np.testing.assert_allclose(output, wanted, 1e-6, 1e-5)


@pytest.mark.parametrize("precision", ["f32", "auto"])
def test_f32_remains_f32(precision: Precision) -> None:
    assert ("int8" in steps_of(small(0, 8, 1, "fake", 0.0), precision)) == (precision == "auto")


def test_precise_excludes_integers() -> None:
    plan = irload.compile_model(small(0, 8, 1, "fake", 0.0), precision="auto", precise=True)
    assert "int8" not in plan.explain()


@pytest.mark.parametrize("low", [-127.97, -127.5, -3.3])
def test_zero_points_that_are_no_integers(low: float) -> None:
    """Results are exact without padding; with padding they may differ by a twentieth of a quantum."""
    net = QuantizedNet(0)
    model = net.model(conv(net, net.quantized(net.input(1, 8, 6, 6), low), net.stored(8, 8, 1, 1)))
    output, wanted = both(model, 1)
    np.testing.assert_allclose(output, wanted, 1e-5, 1e-4)
    padded = QuantizedNet(0)
    x = padded.quantized(padded.input(1, 8, 6, 6), low)
    model = padded.model(conv(padded, x, padded.stored(8, 8, 3, 3), pads=1))
    assert ("int8" in steps_of(model)) == (low == -127.97)


@pytest.mark.parametrize("levels", [256, 16])
@pytest.mark.parametrize("end", [1.0, 3.0])
def test_zeros_between_two_levels_are_rounded_as_in_floats(end: float, levels: int) -> None:
    """Zeros, of which a ReLU has many, are exactly between two levels of a symmetric range with an even number."""
    net = QuantizedNet(1)
    bounds = (net.constant(np.float32(sign * end)) for sign in (-1, 1, -1, 1))
    x = net.op("FakeQuantize", net.op("ReLU", net.input(2, 12, 16)), *bounds, levels=levels, auto_broadcast="numpy")
    model = net.model(net.op("MatMul", x, net.stored(24, 16), transpose_a=False, transpose_b=True))
    data = [net.rng.integers(-4, 2, (2, 12, 16)).astype(np.float32) * end]
    output, wanted = (irload.compile_model(model, 1, precision="auto", optimize=o)(data)[0] for o in (True, False))
    np.testing.assert_allclose(output, wanted, 0, 1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "change",
    [
        lambda net, x: conv(net, net.quantized(x, 0.0, QUANTUM, 512), net.stored(8, 8, 1, 1)),
        lambda net, x: conv(net, net.quantized(x), net.weights(8, 8, 1, 1)),
        lambda net, x: conv(net, net.quantized(x), net.stored(8, 8, 1, 1, channel=1)),
        lambda net, x: conv(net, net.quantized(x, 0.0, RAMP), net.stored(8, 8, 1, 1)),
        lambda net, x: conv(net, x, net.stored(8, 8, 1, 1)),
    ],
    ids=["512 levels", "weights of floats", "scales of inputs", "scales of data", "data of floats"],
)
def test_other_patterns_stay_in_floats(change: Callable[[QuantizedNet, Ref], Ref]) -> None:
    net = QuantizedNet(0)
    model = net.model(change(net, net.input(1, 8, 6, 6)))
    assert "int8" not in steps_of(model)
    output, wanted = both(model, 0)
    np.testing.assert_allclose(output, wanted, 1e-4, 1e-4 * np.abs(wanted).max())


def test_weights_that_share_a_constant_have_their_zero_points() -> None:
    net = QuantizedNet(0)
    stored = net.constant(net.rng.integers(0, 255, (8, 8, 1, 1)).astype(np.uint8))
    x, results = net.quantized(net.input(1, 8, 6, 6)), list[Ref]()
    for zero_point in (127.0, 128.0):
        data = net.op("Convert", stored, destination_type="f32")
        data = net.op("Subtract", data, net.constant(np.full((8, 1, 1, 1), zero_point, np.float32)))
        weights = net.op("Multiply", data, net.constant(np.full((8, 1, 1, 1), 0.5, np.float32)))
        results.append(conv(net, x, weights))
    model = net.model(net.concat(*results))
    assert steps_of(model).count("int8") == 1, "one row of the kernels, of two products"
    output, wanted = both(model, 0)
    np.testing.assert_array_equal(output, wanted)


@pytest.mark.parametrize("zero_point", [0.0, 127.5])
def test_weights_that_are_not_i8_stay_in_floats(zero_point: float) -> None:
    net = QuantizedNet(0)
    data = net.op(
        "Convert", net.constant(np.arange(0, 256, 4).astype(np.uint8).reshape(8, 8, 1, 1)), destination_type="f32"
    )
    data = net.op("Subtract", data, net.constant(np.full((8, 1, 1, 1), zero_point, np.float32)))
    weights = net.op("Multiply", data, net.constant(np.full((8, 1, 1, 1), 0.5, np.float32)))
    model = net.model(conv(net, net.quantized(net.input(1, 8, 6, 6)), weights))
    assert "int8" not in steps_of(model)
    output, wanted = both(model, 0)
    np.testing.assert_allclose(output, wanted, 1e-5, 1e-3)


def test_shapes_share_a_plan() -> None:
    """The second shape traces a plan; the third one binds it."""
    net = QuantizedNet(0)
    model = net.model(conv(net, net.quantized(net.input(1, 8, 7, 9), -128), net.stored(8, 8, 3, 3), pads=1))
    model = model.reshape("1,8,?,?")
    plan, plain = irload.compile_model(model, 1, precision="auto"), irload.compile_model(model, optimize=False)
    for sizes in ((7, 9), (12, 8), (16, 31)):
        data = np.random.default_rng(0).standard_normal((1, 8, *sizes)).astype(np.float32) * 8
        np.testing.assert_allclose(plan(data)[0], plain(data)[0], 0, 1e-4)
        assert "int8 by" in plan.explain(data)


@pytest.mark.parametrize(("length", "transposed"), [(24, True), (24, False), (22, True)])
def test_linear_layers_of_any_length(length: int, transposed: bool) -> None:
    """Two of them with a residual, for three lengths of a sequence. 22 columns are not whole words and stay f32."""
    net = QuantizedNet(0)

    def linear(x: Ref, columns: int, rows: int) -> Ref:
        shape = (columns, rows) if transposed else (rows, columns)
        weights = net.stored(*shape, channel=0 if transposed else 1, largest=31)
        return net.op("MatMul", x, weights, transpose_a=False, transpose_b=transposed)

    x = net.quantized(net.input(1, 7, length), -128)
    y = net.op("ReLU", net.op("Add", linear(x, 40, length), net.constant(np.full((1, 1, 40), 2.0**-12, np.float32))))
    y = net.op("Add", linear(net.quantized(y, 0.0, 0.25), length, 40), x)
    model = net.model(y).reshape(f"1,?,{length}")
    plan, plain = irload.compile_model(model, 1, precision="auto"), irload.compile_model(model, optimize=False)
    for rows in (7, 1, 33):
        data = np.random.default_rng(rows).standard_normal((1, rows, length)).astype(np.float32) * 8
        np.testing.assert_allclose(plan(data)[0], plain(data)[0], 0, 1e-3)
    counted = [line for line in plan.explain(data).splitlines() if "int8 by" in line]
    assert sum(int(line.split()[0]) for line in counted) == (2 if length % 4 == 0 else 1)


@pytest.mark.parametrize("target", [TILES, DOTS], ids=lambda t: t.name)
def test_bf16_and_int8_in_one_plan(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions in bf16 before and after one in integers."""
    monkeypatch.setattr("irload.plan.backends.llvm.available.host_target", lambda: target)
    net = QuantizedNet(0)
    x = conv(net, net.input(1, 16, 20, 20), net.weights(32, 16, 1, 1))
    y = conv(net, net.quantized(x, -128), net.stored(32, 32, 1, 1))
    model = net.model(conv(net, net.op("ReLU", y), net.weights(32, 32, 1, 1)))
    output, wanted = both(model, 0)
    np.testing.assert_allclose(output, wanted, 0, 0.02 * np.abs(wanted).max())
    explained = steps_of(model)
    assert "int8 by" in explained
    assert "bf16 by" in explained


def test_bytes_that_no_product_reads_stay_floats() -> None:
    """A FakeQuantize that the model returns, and a pooling of it."""
    net = QuantizedNet(0)
    x = net.quantized(net.input(1, 8, 6, 6))
    window: dict[str, Any] = {"rounding_type": "floor", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    model = net.model(x, net.op("MaxPool", x, kernel="2,2", **window))
    data = data_for(model, 0)
    data[0][0, 0, 0, 0] = np.nan
    plans = [irload.compile_model(model, 1, precision=precision) for precision in ("f32", "auto")]
    first, second = (plan(data) for plan in plans)
    np.testing.assert_array_equal(first[0], second[0])
    assert plans[0].explain() == plans[1].explain()


def test_concatenations_and_views_carry_bytes() -> None:
    net = QuantizedNet(0)
    x = net.input(1, 8, 6, 6)
    halves = [net.quantized(conv(net, net.quantized(x), net.stored(4, 8, 1, 1)), -128, 1.0) for _ in range(2)]
    y = net.transpose(net.reshape(net.concat(*halves), 1, 8, 36), 0, 2, 1)
    model = net.model(net.op("MatMul", y, net.stored(8, 6, channel=1), transpose_a=False, transpose_b=False))
    output, wanted = both(model, 0)
    np.testing.assert_allclose(output, wanted, 1e-6, 1e-5)
    assert steps_of(model).count("int8 by") >= 1


@pytest.mark.parametrize("seed", range(8))
def test_openvino_agrees_to_a_quantum(seed: int, tmp_path: Path) -> None:
    """Weights have 7 bits, so that OpenVINO's sums do not saturate. Each FakeQuantize adds at most a quantum."""
    rng = np.random.default_rng(seed)
    channels, kernel, low = int(rng.choice([8, 16])), int(rng.choice([1, 3])), float(rng.choice([0, -128]))
    net = QuantizedNet(seed)
    x = net.quantized(net.input(1, channels, 11, 11), low)
    y = conv(net, x, net.stored(24, channels, kernel, kernel, largest=63), pads=kernel // 2)
    model = net.model(net.quantized(y, -128, 1.0))
    data = data_for(model, seed)
    output = irload.compile_model(model, precision="auto")(data)[0]
    irload.save_model(model, tmp_path / "model.xml")
    runtime = ov.Core().compile_model(tmp_path / "model.xml", "CPU")
    wanted = next(iter(runtime(data).values()))
    np.testing.assert_allclose(output, wanted, 0, 1.001)
    assert np.mean(output != wanted) < 0.01
