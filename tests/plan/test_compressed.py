"""Compressed weights are passed to back ends unconverted, with their scale and zero point."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.element import ElementType
from irload.plan.ir.compressed import Compressed, compressed
from irload.plan.ir.steps import MatMulStep
from models import ir
from tests.plan.compressed_weights import Weights
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees

N, K = 512, 160


def weights_of(net: Net, w: ir.Ref) -> tuple[Compressed | None, np.ndarray]:
    """The compressed source of a matmul's weights, and the weights."""
    model = net.model(net.op("MatMul", net.input(2, K), w, transpose_a=False, transpose_b=True))
    plan = plan_of(model, net.shapes)
    (step,) = (s for s in plan.program.steps if isinstance(s, MatMulStep))
    source = step.inputs[1].source
    assert source is not None
    return compressed(source), source.array


def convert(net: Net, x: ir.Ref, to: str = "f32") -> ir.Ref:
    return net.op("Convert", x, destination_type=to)


@pytest.mark.parametrize("last", [(), (1,), (1, 1)])
def test_axes_of_length_1_after_the_stored_weights(last: tuple[int, ...]) -> None:
    net = Net()
    stored = np.random.default_rng(0).integers(0, 15, (N, K, *last)).astype(np.uint8)
    scale = net.constant(np.full((N, 1, *last), 0.5, np.float32))
    w = net.op("Multiply", convert(net, net.constant(stored)), scale)
    source, array = weights_of(net, net.reshape(w, N, K) if last else w)
    assert source is not None
    assert source.groups(1) == 1
    np.testing.assert_array_equal(array, stored.reshape(N, K) * np.float32(0.5))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("zero_point", [False, True])
@pytest.mark.parametrize("through", ["f32", "f16"])
def test_integers_with_scale_and_zero_point(through: str, zero_point: bool, grouped: bool) -> None:
    net, rng = Net(), np.random.default_rng(0)
    shape = (N, 4, K // 4) if grouped else (N, K)
    lead = (*shape[:-1], 1)
    stored = rng.integers(0, 15, shape).astype(np.uint8)
    zero = rng.integers(0, 15, lead).astype(np.uint8)
    scale = rng.random(lead).astype(through.replace("f", "float"))
    w = convert(net, net.constant(stored), through)
    if zero_point:
        w = net.op("Subtract", w, convert(net, net.constant(zero), through))
    w = net.op("Multiply", w, net.constant(scale))
    w = net.reshape(w, N, K) if grouped else w
    w = convert(net, w) if through == "f16" else w
    weights, array = weights_of(net, w)
    assert weights is not None
    np.testing.assert_array_equal(weights.stored.array, stored)
    assert weights.scale is not None
    np.testing.assert_array_equal(weights.scale.array, scale)
    assert (weights.zero_point is not None) == zero_point
    if weights.zero_point is not None:
        np.testing.assert_array_equal(weights.zero_point.array, zero)
    assert weights.shape == (N, K)
    shifted = stored.astype(np.float32) - (zero.astype(np.float32) if zero_point else 0)
    np.testing.assert_allclose(array, (shifted * scale.astype(np.float32)).reshape(N, K), rtol=2e-3, atol=1e-3)


def test_halves() -> None:
    net = Net()
    stored = np.random.default_rng(0).standard_normal((N, K)).astype(np.float16)
    weights, array = weights_of(net, convert(net, net.constant(stored)))
    assert weights is not None
    assert (weights.scale, weights.zero_point) == (None, None)
    np.testing.assert_array_equal(weights.stored.array, stored)
    np.testing.assert_array_equal(array, stored.astype(np.float32))


@pytest.mark.parametrize("kind", ["plain", "integers", "a product of floats"])
def test_weights_that_are_not_compressed(kind: str) -> None:
    net, rng = Net(), np.random.default_rng(0)
    w = net.constant(rng.standard_normal((N, K)).astype(np.float32))
    if kind == "integers":
        w = convert(net, net.constant(rng.integers(0, 9, (N, K)).astype(np.uint8)))
    if kind == "a product of floats":
        w = net.op("Multiply", w, net.constant(np.float32(2)))
    assert weights_of(net, w)[0] is None


@pytest.mark.parametrize("element", [et.u8, et.i4], ids=str)
def test_small_weights_are_decompressed_in_f32(element: ElementType) -> None:
    """Inference rounds the values of small weights to f16 after each operation; a plan does not."""
    net = Net()
    weights = Weights(element, 4, 8, groups=1)
    model = net.model(net.op("MatMul", net.input(8, 8), weights.of(net), transpose_a=False, transpose_b=True))
    output = irload.compile_model(model, 1)(np.eye(8, dtype=np.float32))[0]
    assert np.any(output != output.astype(np.float16)), "the weights are rounded"
    rounded = irload.compile_model(model, 1, optimize=False)(np.eye(8, dtype=np.float32))[0]
    np.testing.assert_array_equal(output.astype(np.float16), rounded)


FACTORS = [(), (1,), (1, 1, 1), (N, 1, 1), (1, 4, 1), (N, 4, 1)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("jit", ["off", "auto"])
@pytest.mark.parametrize("zero_point", FACTORS, ids=str)
@pytest.mark.parametrize("scale", FACTORS, ids=str)
def test_factors_of_weights_stored_in_groups(
    scale: tuple[int, ...], zero_point: tuple[int, ...], jit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights stored as [columns, groups, size] may have factors for each column, each group or all weights."""
    monkeypatch.setenv("IRLOAD_JIT", jit)
    net, rng = Net(), np.random.default_rng(0)
    stored, zeros = (
        net.constant(rng.integers(0, 15, shape).astype(np.uint8)) for shape in ((N, 4, K // 4), zero_point)
    )
    shifted = net.op("Subtract", convert(net, stored), convert(net, zeros))
    w = net.op("Multiply", shifted, net.constant(rng.random(scale).astype(np.float32) + 1))
    y = net.op("MatMul", net.input(3, K), net.reshape(w, N, K), transpose_a=False, transpose_b=True)
    agrees(net.model(y), net.shapes, tolerance=2e-5)
