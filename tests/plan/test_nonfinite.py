"""NaN and infinities occur in the plan's results at the same positions as in the results by `compute`."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from tests.plan.graphs import Net, agrees

CONV = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


@pytest.mark.parametrize("pads", [0, 1])
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_pooling(kind: str, kernel: int, pads: int) -> None:
    net = Net()
    x = net.input(2, 3, 9, 9)
    pad = f"{min(pads, kernel - 1)},{min(pads, kernel - 1)}"
    more: dict[str, object] = {"exclude-pad": "true"} if kind == "AvgPool" else {}
    window = {"kernel": f"{kernel},{kernel}", "strides": "2,1", "pads_begin": pad, "pads_end": pad}
    y = net.op(kind, x, rounding_type="floor", auto_pad="explicit", **window, **more)
    agrees(net.model(y), net.shapes, special=True)


@pytest.mark.parametrize("axes", [[1], [2, 3], [3]])
@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "ReduceMean", "ReduceSum"])
def test_reductions(kind: str, axes: list[int]) -> None:
    net = Net()
    x = net.input(2, 3, 4, 5)
    agrees(net.model(net.op(kind, x, net.constant(axes), keep_dims=True)), net.shapes, special=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [(9, 11), (3, 4), (16, 7)])
@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "nearest"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_resizing(coordinates: str, mode: str, size: tuple[int, int]) -> None:
    net = Net()
    x = net.input(2, 3, 8, 7)
    y = net.op(
        "Interpolate", net.op("ReLU", x), net.constant(list(size)), net.constant(np.ones(2, np.float32)),
        net.constant([2, 3]), version="opset4", mode=mode, shape_calculation_mode="sizes", antialias="false",
        coordinate_transformation_mode=coordinates, nearest_mode="floor", cube_coeff="-0.75",
    )  # fmt: skip
    agrees(net.model(y, net.conv(y, 3, 2)), net.shapes, special=True)


@pytest.mark.parametrize("mask", ["none", "bool", "float", "causal"])
def test_attention(mask: str) -> None:
    net = Net()
    q, k, v = net.input(2, 3, 5, 4), net.input(2, 3, 6, 4), net.input(2, 3, 6, 4)
    kept = np.random.default_rng(1).random((5, 6)) > 0.4
    kept[2] = False
    masks = {"bool": [net.constant(kept)], "float": [net.constant(np.where(kept, 0, -np.inf).astype(np.float32))]}
    y = net.op("ScaledDotProductAttention", q, k, v, *masks.get(mask, []), version="opset13", causal=mask == "causal")
    agrees(net.model(y), net.shapes, special=True)


def test_attention_whose_mask_is_computed() -> None:
    net = Net()
    q, k, v, m = net.input(2, 3, 5, 4), net.input(2, 3, 6, 4), net.input(2, 3, 6, 4), net.input(5, 6)
    kept = net.op("Greater", m, net.constant(np.float32(0)))
    y = net.op("ScaledDotProductAttention", q, k, v, kept, version="opset13", causal=False)
    agrees(net.model(y), net.shapes, special=True)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("constant", [False, pytest.param(True, marks=pytest.mark.numpy_kernels)])
def test_convolutions(constant: bool, kernel: int) -> None:
    """Compiled kernels skip the padding, so that an infinite weight is not multiplied by its zeros: no NaN there."""
    net = Net()
    x = net.input(2, 4, 8, 9)
    w = np.random.default_rng(2).standard_normal((6, 4, kernel, kernel)).astype(np.float32)
    w[1, 2, 0, 0], w[3] = (np.inf if constant else 0), 0
    y = net.op("Convolution", x, net.constant(w), **CONV)
    z = net.op("GroupConvolution", x, net.constant(w[:4, None, :1]), **CONV)
    agrees(net.model(net.op("ReLU", y), net.op("Clamp", z, min=-1, max=1)), net.shapes, special=True)


def test_a_nonfinite_scale_is_not_folded_into_its_convolution() -> None:
    net = Net()
    w = np.float32([[1, 0], [2, 1]]).reshape(2, 2, 1, 1)
    y = net.op(
        "Convolution", net.input(1, 2, 3, 3), net.constant(w), **{**CONV, "pads_begin": "0,0", "pads_end": "0,0"}
    )
    factor = net.constant(np.float32([np.inf, 1e-44]).reshape(1, 2, 1, 1))
    agrees(net.model(net.op("Multiply", y, factor)), net.shapes, special=True)


@pytest.mark.parametrize("function", ["ReLU", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "Abs", "Floor"])
def test_functions(function: str) -> None:
    net = Net()
    x = net.input(4, 30)
    agrees(net.model(net.op(function, x)), net.shapes, special=True)


@pytest.mark.parametrize("function", ["Mish", "SoftPlus", "HSwish", "Swish", "HSigmoid", "Gelu"])
def test_activations(function: str) -> None:
    net = Net()
    x = net.input(4, 30)
    version = {"Gelu": "opset7", "HSigmoid": "opset5"}.get(function, "opset4")
    agrees(net.model(net.op(function, x, version=version)), net.shapes, special=True)


@pytest.mark.parametrize("function", ["Maximum", "Minimum", "Add", "Multiply", "Divide"])
def test_pairs(function: str) -> None:
    net = Net()
    x, y = net.input(4, 30), net.input(1, 30)
    number = net.constant(np.float32([np.nan, np.inf, 0.5]).reshape(3, 1, 1))
    agrees(net.model(net.op(function, x, y), net.op(function, x, number)), net.shapes, special=True)


@pytest.mark.parametrize("kind", ["SoftMax", "MVN"])
def test_rows(kind: str) -> None:
    net = Net()
    x = net.input(4, 30)
    if kind == "SoftMax":
        y = net.op(kind, x, axis=1)
    else:
        mode = {"eps": 1e-5, "eps_mode": "inside_sqrt", "normalize_variance": True}
        y = net.op(kind, x, net.constant([1]), version="opset6", **mode)
    agrees(net.model(y), net.shapes, special=True)


@pytest.mark.parametrize("size", [(6, 8), (7, 8), (7, 9)])
@pytest.mark.parametrize("type", ["AdaptiveAvgPool", "AdaptiveMaxPool"])
def test_adaptive_pooling(type: str, size: tuple[int, int]) -> None:
    net = Net()
    more: dict[str, object] = {} if type == "AdaptiveAvgPool" else {"outputs": 2, "index_element_type": "i64"}
    y = net.ops(type, net.input(2, 3, *size), net.constant([3, 4]), version="opset8", **more)[0]
    agrees(net.model(net.op("ReLU", y)), net.shapes, special=True)


@pytest.mark.parametrize("mask", [False, True])
def test_scores_that_overflow_keep_their_sign(mask: bool) -> None:
    """Products of q and k are finite, their sum times 8 is +∞; the products times 8 are infinities of both signs."""
    net = Net()
    q, k, v = net.input(1, 1, 2, 4), net.input(1, 1, 3, 4), net.input(1, 1, 3, 4)
    scores = net.op("MatMul", q, k, transpose_a=False, transpose_b=True)
    scores = net.op("Multiply", scores, net.constant(np.float32(8)))
    if mask:
        scores = net.op("Add", scores, net.constant(np.ones((2, 3), np.float32)))
    y = net.op("MatMul", net.op("SoftMax", scores, axis=3), v, transpose_a=False, transpose_b=False)
    model = net.model(y)
    inputs = [
        np.float32([[-0.75, 2.5, 1, 1], [0.75, -2.5, -1, -1]]).reshape(1, 1, 2, 4),
        np.float32([[1, 1, 1, 1], [1, 0, 1, 0], [8e37, 1e38, -1e37, -2e37]]).reshape(1, 1, 3, 4),
        np.ones((1, 1, 3, 4), np.float32),
    ]
    plain = irload.compile_model(model, optimize=False)(inputs)[0]
    np.testing.assert_array_equal(np.isnan(plain[0, 0, :, 0]), [True, False])
    np.testing.assert_array_equal(irload.compile_model(model, 1)(inputs)[0], plain)


@pytest.mark.numpy_kernels
@pytest.mark.parametrize("folded", [False, True])
def test_scores_that_overflow_only_without_their_scale(folded: bool) -> None:
    """q · scale times k is finite, q times k is not."""
    net = Net()
    q, k, v = net.input(1, 1, 2, 4), net.input(1, 1, 3, 4), net.input(1, 1, 3, 4)
    number = net.constant(np.float32(0.25))
    if folded:
        scores = net.op("MatMul", net.op("Multiply", q, number), k, transpose_a=False, transpose_b=True)
        y = net.op("MatMul", net.op("SoftMax", scores, axis=3), v, transpose_a=False, transpose_b=False)
    else:
        mask = net.constant(np.zeros((2, 3), np.float32))
        y = net.op("ScaledDotProductAttention", q, k, v, mask, number, version="opset13", causal=False)
    model = net.model(y)
    keys = np.float32([[1, 1, 1, 1], [1, 0, 1, 0], [3e38, 1e38, 0, 0]]).reshape(1, 1, 3, 4)
    inputs = [np.float32([[2, 1, 1, 1], [-2, -1, 0, 1]]).reshape(1, 1, 2, 4), keys, np.ones((1, 1, 3, 4), np.float32)]
    plain = irload.compile_model(model, optimize=False)(inputs)[0]
    np.testing.assert_array_equal(plain, np.ones_like(plain))
    np.testing.assert_array_equal(irload.compile_model(model, 1)(inputs)[0], plain)
