"""Products and gathers of compressed weights on NumPy's back end."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.element import ElementType
from tests.plan.compressed_weights import ELEMENTS, Weights
from tests.plan.exact import plan_of
from tests.plan.graphs import Net, agrees


@pytest.mark.one_in(2)
@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
@pytest.mark.parametrize("transposed", [True, False])
def test_matmuls(element: ElementType, transposed: bool) -> None:
    for groups, rows in ((0, 1), (1, 2), (3, 5), (3, 64)):
        net = Net()
        zero = groups > 0 and element.kind != "float"
        weights = Weights(element, 42, 96, groups, zero, "f32", transposed)
        y = net.op("MatMul", net.input(rows, 96), weights.of(net), transpose_a=False, transpose_b=transposed)
        y = net.op("Add", y, net.weights(42))
        agrees(net.model(y), net.shapes)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda e: e.name)
def test_gathers(element: ElementType) -> None:
    net = Net()
    weights = Weights(element, 50, 96, 3, element.kind != "float", "f32")
    y = net.op("Gather", weights.of(net), net.integers(2, 3), net.constant(0), version="opset8", batch_dims=0)
    indices = np.array([[3, 49, 0], [-1, 17, 50]])
    expected, actual = (
        irload.compile_model(net.model(y), **options)([indices])[0] for options in ({"optimize": False}, {"jit": False})
    )
    np.testing.assert_array_equal(actual, expected)


def test_weights_are_never_widened_in_memory() -> None:
    net = Net()
    weights = Weights(et.u4, 4096, 1024, 8, True)
    y = net.op("MatMul", net.input(3, 1024), weights.of(net), transpose_a=False, transpose_b=True)
    nbytes = plan_of(net.model(y), net.shapes).nbytes
    assert sum(nbytes.values()) < 4096 * 1024
