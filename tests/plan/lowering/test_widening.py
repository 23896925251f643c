"""Floats of 16 bits: a plan computes in f32 and rounds only its results."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.plan.sanitizing import sanitizing
from tests.plan.graphs import PAIRS, Net
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
def test_half_runs_on_kernels_of_f32(name: str) -> None:
    """Plain execution rounds each layer to f16; a plan rounds only its results."""
    net = Net()
    x = net._graph.parameter("x", "f16", (2, 2, 4, 4))
    model = net.model(HALF[name](net, x))
    compiled = irload.compile_model(model, 1)
    data = np.random.default_rng(0).standard_normal((2, 2, 4, 4)).astype(np.float16)
    output = compiled(data)[0]
    ((plan,),) = compiled._pools.values()
    assert "compute" not in {b.name for b in plan.kernels}
    plain = irload.compile_model(model, optimize=False)(data)[0]
    assert output.dtype == plain.dtype == np.float16
    np.testing.assert_allclose(output.astype(np.float32), plain.astype(np.float32), rtol=2e-3, atol=1e-3)


def f16(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float16)


def test_results_are_rounded_once() -> None:
    rng = np.random.default_rng(1)
    net = Net()
    x = net._graph.parameter("x", "f16", (3, 50))
    w, factor, data = f16(rng, 50, 7), f16(rng, 7), f16(rng, 3, 50)
    y = net.op("MatMul", x, net.constant(w), transpose_a=False, transpose_b=False)
    y = net.op("Multiply", net.op("Tanh", y), net.constant(factor))
    output = irload.compile_model(net.model(y), 1)(data)[0]
    exact = np.tanh(data.astype(np.float64) @ w.astype(np.float64)) * factor.astype(np.float64)
    assert output.dtype == np.float16
    np.testing.assert_allclose(output.astype(np.float64), exact, rtol=2.0**-11 * 1.01)


def test_intermediates_beyond_f16_stay_finite() -> None:
    net = Net()
    x = net._graph.parameter("x", "f16", (4,))
    y = net.op("Multiply", net.op("Multiply", x, x), net.constant(np.float16(2.0**-16)))
    data = np.array([300, 1000, 2, -400], np.float16)
    model = net.model(y)
    wanted = (data.astype(np.float32) ** 2 / 65536).astype(np.float16)
    np.testing.assert_array_equal(irload.compile_model(model, 1)(data)[0], wanted)
    assert np.isinf(irload.compile_model(model, optimize=False)(data)[0]).any()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_conversions_and_state_keep_their_types(dtype: str) -> None:
    net = Net()
    x = net._graph.parameter("x", dtype, (2, 3))
    kept = net.op("ReadValue", x, version="opset3", variable_id="v")
    total = net.op("Add", kept, x)
    stored = net.op("Assign", total, version="opset3", variable_id="v")
    whole = net.op("Convert", total, destination_type="i32")
    model = net.model(stored, whole, net.op("Convert", total, destination_type="f32"))
    data = np.array([[0.25, 1.5, -3], [7, -0.5, 2]], np.float32).astype(model.inputs[0].element_type.dtype)
    requests = [irload.compile_model(model, optimize=optimize).create_infer_request() for optimize in (True, False)]
    for _ in range(3):
        for a, b in zip(*(request.infer(data).values() for request in requests), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_intermediate_outputs_have_their_types() -> None:
    net = Net()
    x = net._graph.parameter("x", "f16", (2, 3))
    y = net.op("SoftMax", net.op("Tanh", x), axis=1)
    compiled = irload.compile_model(net.model(y), 1, jit=False)
    schedule = compiled.schedule(compiled.model, [p.type for p in compiled.inputs], None)
    plan = compiled.take(schedule.part)
    data = f16(np.random.default_rng(0), 2, 3)
    outputs = list(plan.outputs([data]))
    assert [array.dtype for _, array in outputs] == [np.float16] * 2


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_values_known_to_inference_are_constants(dtype: str) -> None:
    """Plans do not widen the operands of ConvertLike, but folding computes in f32."""
    net = Net()
    x = net._graph.parameter("x", dtype, (3, 5))
    size = net.op("ShapeOf", x, version="opset3", output_type="i64")
    half = net.op("Convert", net.constant(np.float32(1)), destination_type=dtype)
    like = net.op("ConvertLike", net.constant(np.float32([0, -1.5, 2, 0.1, 7])), half)
    parts = net.ops("Split", net.op("ConvertLike", size, half), net.constant(np.int64(0)), outputs=2, num_splits=2)
    kept = net.op("ReadValue", like, version="opset3", variable_id="v")
    stored = net.op("Assign", kept, version="opset3", variable_id="v")
    model = net.model(net.op("Add", x, like), net.op("Multiply", x, parts[1]), like, *parts, kept, stored)
    data = np.random.default_rng(0).standard_normal((3, 5)).astype(model.inputs[0].element_type.dtype)
    plain = irload.compile_model(model, optimize=False)(data).values()
    for threads in (1, 2):
        with sanitizing():
            result = irload.compile_model(model, threads)(data).values()
        for a, b in zip(result, plain, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.astype(np.float32), b.astype(np.float32))
