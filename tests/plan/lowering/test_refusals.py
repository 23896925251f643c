"""Unsupported by kernels or lowering: empty tensors, some attributes. The operation's `compute` runs instead."""

from __future__ import annotations

import pytest

from tests.plan.exact import Exact, kernels
from tests.plan.graphs import PAIRS, agrees
from tests.plan.lowering.nodes import MVN

EMPTY = {
    "matmul": lambda net, x: net.op("MatMul", x, net.weights(4, 3), transpose_a=False, transpose_b=False),
    "softmax": lambda net, x: net.op("SoftMax", x, axis=1),
    "mvn": lambda net, x: net.op("MVN", x, net.constant([3]), **MVN),
    "reduction": lambda net, x: net.op("ReduceSum", x, net.constant([1]), keep_dims=True),
    "groups": lambda net, x: net.op(
        "GroupNormalization", x, net.weights(2), net.weights(2), version="opset12", num_groups=2, epsilon=1e-3
    ),
    "convolution": lambda net, x: net.op("Convolution", x, net.weights(3, 2, 2, 2), **PAIRS),
    "transposed": lambda net, x: net.op("ConvolutionBackpropData", x, net.weights(2, 3, 2, 2), **PAIRS),
    "pooling": lambda net, x: net.op(
        "AvgPool", x, kernel="2,2", strides="1,1", pads_begin="1,0", pads_end="1,0", **{"exclude-pad": True}
    ),
    "sampling": lambda net, x: net.op("GridSample", x, net.weights(0, 3, 3, 2), version="opset9"),
    "slice": lambda net, x: net.op(
        "Slice", x, *(net.constant(v) for v in ([0], [0], [1], [1])), version="opset8"
    ),
    "attention without features": lambda net, x: net.op(
        "ScaledDotProductAttention", x, x, net.weights(1, 2, 4, 3), version="opset13", causal=False
    ),
}  # fmt: skip
COMPUTED = {"attention without features": (1, 2, 4, 0), "pooling": (1, 2, 0, 4)}
"""The shapes of empty inputs whose results are not empty; all others are (0, 2, 4, 4)."""


@pytest.mark.parametrize("name", EMPTY)
def test_empty_tensors_are_not_computed(name: str) -> None:
    net = Exact()
    model = net.model(EMPTY[name](net, net.input(*COMPUTED.get(name, (0, 2, 4, 4)))))
    assert kernels(model, net.shapes) == (["compute"] if name in COMPUTED else [])
    agrees(model, net.shapes)
