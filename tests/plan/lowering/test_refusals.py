"""What no kernel takes: other types than f32, and tensors of no elements. The operation itself computes then."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from tests.plan.exact import Exact, kernels
from tests.plan.graphs import PAIRS, Net, agrees
from tests.plan.lowering.nodes import FOUR, MVN, SCALES

HALF = {
    "unary": lambda net, x: net.op("Tanh", x),
    "binary": lambda net, x: net.op("Add", x, x),
    "difference": lambda net, x: net.op("SquaredDifference", x, net.constant(np.float16(2))),
    "power": lambda net, x: net.op("Power", x, net.constant(np.float16(2))),
    "clamp": lambda net, x: net.op("Clamp", x, min=-1, max=1),
    "swish": lambda net, x: net.op("Swish", x, version="opset4"),
    "prelu": lambda net, x: net.op("PReLU", x, net.constant(np.float16([0.5]))),
    "gelu": lambda net, x: net.op("Gelu", x, version="opset7"),
    "hsigmoid": lambda net, x: net.op("HSigmoid", x, version="opset5"),
    "hard sigmoid": lambda net, x: net.op(
        "HardSigmoid", x, net.constant(np.float16(0.3)), net.constant(np.float16(0.5))
    ),
    "elu": lambda net, x: net.op("Elu", x, alpha=1),
    "matmul": lambda net, x: net.op(
        "MatMul", x, net.constant(np.ones((4, 4), np.float16)), transpose_a=False, transpose_b=False
    ),
    "attention": lambda net, x: net.op("ScaledDotProductAttention", x, x, x, version="opset13", causal=False),
    "softmax": lambda net, x: net.op("SoftMax", x, axis=1),
    "mvn": lambda net, x: net.op("MVN", x, net.constant([3]), **MVN),
    "reduction": lambda net, x: net.op("ReduceSum", x, net.constant([1]), keep_dims=True),
    "groups": lambda net, x: net.op(
        "GroupNormalization", x, *(net.constant(np.ones(2, np.float16)) for _ in range(2)), version="opset12",
        num_groups=2, epsilon=1e-3,
    ),
    "batch norm": lambda net, x: net.op(
        "BatchNormInference", x, *(net.constant(np.ones(2, np.float16)) for _ in range(4)), version="opset5",
        epsilon=1e-3,
    ),
    "quantization": lambda net, x: net.op(
        "FakeQuantize", x, *(net.constant(np.float16(b)) for b in (-1, 1, -1, 1)), levels=9
    ),
    "convolution": lambda net, x: net.op("Convolution", x, net.constant(np.ones((3, 2, 2, 2), np.float16)), **PAIRS),
    "transposed": lambda net, x: net.op(
        "ConvolutionBackpropData", x, net.constant(np.ones((2, 3, 2, 2), np.float16)), **PAIRS
    ),
    "pooling": lambda net, x: net.op(
        "MaxPool", x, kernel="2,2", strides="1,1", pads_begin="0,0", pads_end="0,0"
    ),
    "resizing": lambda net, x: net.op(
        "Interpolate", x, net.constant([4, 8]), net.constant(SCALES), net.constant([2, 3]), version="opset4", **FOUR
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HALF)
def test_kernels_are_of_f32_alone(name: str) -> None:
    net = Net()
    x = net._graph.parameter("x", "f16", (2, 2, 4, 4))
    y = HALF[name](net, x)
    model = net.model(y)
    compiled = irload.compile_model(model, 1)
    given = np.random.default_rng(0).standard_normal((2, 2, 4, 4)).astype(np.float16)
    found = compiled(given)[0]
    ((plan,),) = compiled._pools.values()
    assert {b.name for b in plan.kernels} == {"compute"}
    np.testing.assert_array_equal(found, irload.compile_model(model, optimize=False)(given)[0])


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
    "slice": lambda net, x: net.op(
        "Slice", x, *(net.constant(v) for v in ([0], [0], [1], [1])), version="opset8"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_kernels_are_not_for_nothing(name: str) -> None:
    net = Exact()
    model = net.model(EMPTY[name](net, net.input(*((1, 2, 0, 4) if name == "pooling" else (0, 2, 4, 4)))))
    assert kernels(model, net.shapes) == ["compute"]
    agrees(model, net.shapes)
