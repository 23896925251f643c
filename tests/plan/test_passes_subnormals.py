"""Subnormal constants of products, which are slow, are flushed to zero; other constants are preserved."""

from __future__ import annotations

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.ir.steps import ConvStep, MatMulStep
from irload.plan.passes.subnormals import without_subnormals
from tests.plan.exact import plan_of
from tests.plan.graphs import PAIRS, Net

TINY = np.float32(2.0**-126)
"""The smallest normal number."""


def mixed(*shape: int) -> Array:
    """Random numbers, every third of which is subnormal."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.reshape(-1)[::3] *= TINY / 8
    return x


def test_only_subnormals_are_flushed() -> None:
    kept = np.array([0, -0.0, TINY, -TINY, 1, np.inf, -np.inf, np.nan], np.float32)
    lost = np.array([1e-45, -1e-45, np.nextafter(TINY, 0), -np.nextafter(TINY, 0)], np.float32)
    assert without_subnormals(kept) is kept
    flushed = without_subnormals(np.concatenate([kept, lost]))
    np.testing.assert_array_equal(flushed[: kept.size].view(np.uint32), kept.view(np.uint32))
    np.testing.assert_array_equal(flushed[kept.size :], 0)


@pytest.mark.parametrize("place", [0, 1 << 16, 150_000])
def test_a_single_one_in_a_large_array_is_detected(place: int) -> None:
    array = np.ones((400, 500), np.float32)
    array.reshape(-1)[place] = TINY / 2
    flushed = without_subnormals(array)
    assert flushed.shape == array.shape
    assert np.flatnonzero(flushed == 0).tolist() == [place]
    assert without_subnormals(array[:0]).size == 0


@pytest.mark.parametrize("relu", ["first", "last"])
@pytest.mark.parametrize("kind", ["convolution", "matmul"])
def test_constants_of_products_and_their_sums_lose_them(kind: str, relu: str) -> None:
    net = Net()
    if kind == "convolution":
        y = net.op("Convolution", net.input(1, 3, 8, 8), net.constant(mixed(4, 3, 3, 3)), **PAIRS)
        bias = mixed(1, 4, 1, 1)
    else:
        y = net.op("MatMul", net.input(2, 6), net.constant(mixed(6, 4)), transpose_a=False, transpose_b=False)
        bias = mixed(1, 4)
    y = net.op("Add", net.op("ReLU", y) if relu == "first" else y, net.constant(bias))
    model = net.model(net.op("ReLU", y) if relu == "last" else y)
    (step,) = (s for s in plan_of(model, net.shapes).program.steps if isinstance(s, ConvStep | MatMulStep))
    assert len(step.inputs) == 3
    for value in step.inputs[1:]:
        assert value.source is not None
        for array in (value.source.array, value.source.stored):
            assert not ((np.abs(array) < TINY) & (array != 0)).any()
            assert (array != 0).any()


def test_factors_keep_subnormals() -> None:
    net, factor = Net(), mixed(1, 4)
    y = net.op("MatMul", net.input(2, 6), net.weights(6, 4), transpose_a=False, transpose_b=False)
    model = net.model(net.op("Multiply", net.op("ReLU", y), net.constant(factor)))
    (step,) = plan_of(model, net.shapes).program.steps
    assert step.inputs[-1].source is not None
    np.testing.assert_array_equal(step.inputs[-1].source.array, factor)


def test_other_operations_preserve_subnormals() -> None:
    net = Net()
    x, c = net.input(3, 7), mixed(3, 7)
    model = net.model(net.op("Maximum", x, net.constant(c)))
    (output,) = plan_of(model, net.shapes).run([np.zeros((3, 7), np.float32)])
    np.testing.assert_array_equal(output, np.maximum(c, 0))
