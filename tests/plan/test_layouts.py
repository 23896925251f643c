"""Graphs whose values have unusual strides: the plan gives the results of `compute`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.graphs import Net, agrees

PAD = {"pads_begin": "1,1", "pads_end": "1,1"}


@pytest.mark.parametrize(("kernel", "pads"), [(3, 0), (1, 0), (3, 1), (2, 0)])
@pytest.mark.parametrize("before", ["relu", "transpose", "matmul", "cut", "none"])
def test_depthwise_on_data_that_is_not_channels_last(before: str, kernel: int, pads: int) -> None:
    net = Net()
    x = net.input(2, 6, 8, 9)
    y = {
        "relu": lambda: net.op("ReLU", x),
        "transpose": lambda: net.transpose(net.reshape(x, 2, 8, 6, 9), 0, 2, 1, 3),
        "matmul": lambda: net.op("MatMul", x, net.weights(9, 9), transpose_a=False, transpose_b=False),
        "cut": lambda: net.ops("Split", net.concat(x, x), net.constant(1), outputs=2, num_splits=2)[0],
        "none": lambda: x,
    }[before]()
    attributes = {"pads_begin": f"{pads},{pads}", "pads_end": f"{pads},{pads}"}
    agrees(net.model(net.depthwise(y, 6, kernel, **attributes)), net.shapes)


def test_depthwise_into_a_concat() -> None:
    net = Net()
    a = net.conv(net.input(1, 8, 10, 10), 8, 8)
    agrees(net.model(net.concat(a, net.op("ReLU", net.depthwise(a, 8, **PAD)))), net.shapes)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
def test_convolutions_into_a_concat_on_any_axis(batch: int, depthwise: bool, kernel: int, axis: int) -> None:
    net = Net()
    x, y = (net.input(batch, 6, 8, 9) for _ in range(2))
    attributes = PAD if kernel == 3 else {}
    a, b = (
        net.depthwise(v, 6, kernel, **attributes) if depthwise else net.conv(v, 6, 6, kernel, **attributes)
        for v in (x, y)
    )
    agrees(net.model(net.concat(net.op("ReLU", a), b, axis=axis)), net.shapes)


@pytest.mark.parametrize("groups", [1, 3])
def test_volumes_and_lines_into_a_concat(groups: int) -> None:
    net = Net()
    x, y = net.input(2, 6, 5, 6, 7), net.input(2, 6, 11)
    w, v = net.weights(groups, 6 // groups, 6 // groups, 3, 3, 3), net.weights(groups, 6 // groups, 6 // groups, 3)
    three = {"strides": "1,1,1", "dilations": "1,1,1", "pads_begin": "1,1,1", "pads_end": "1,1,1"}
    one = {"strides": "1", "dilations": "1", "pads_begin": "1", "pads_end": "1"}
    a = net.op("GroupConvolution", x, w, **three)
    b = net.op("GroupConvolution", y, v, **one)
    outputs = [net.concat(a, a, net.op("ReLU", a), axis=k) for k in (1, 4)]
    agrees(net.model(*outputs, *(net.concat(net.op("ReLU", b), b, axis=k) for k in (1, 2))), net.shapes)


@pytest.mark.parametrize("axis", [1, 2])
def test_a_channel_shuffle_into_a_concat(axis: int) -> None:
    net = Net()
    x, y = net.input(1, 8, 4, 4), net.input(1, 8, 4, 4)
    shuffled = net.reshape(net.transpose(net.reshape(net.conv(x, 8, 8), 1, 2, 4, 4, 4), 0, 2, 1, 3, 4), 1, 8, 4, 4)
    agrees(net.model(net.concat(shuffled, y, axis=axis)), net.shapes)


def test_rows_of_a_constant_that_differ_from_slice_to_slice() -> None:
    net = Net()
    x = net.input(1, 3, 80, 80, 22)
    agrees(net.model(net.op("Multiply", x, net.weights(1, 3, 1, 1, 22))), net.shapes)


@pytest.mark.parametrize("shape", [(2, 4, 1), (2, 1, 5), (2, 4, 5), (1, 5), (4, 1)])
def test_a_normalisation_by_computed_operands(shape: tuple[int, ...]) -> None:
    net = Net()
    x, g = net.input(2, 4, 5), net.input(*shape)
    normal = net.op(
        "MVN", x, net.constant([-1]), version="opset6", eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True
    )
    agrees(net.model(net.op("Multiply", normal, net.op("Exp", g))), net.shapes)


def test_a_normalisation_and_a_transposed_residual() -> None:
    net = Net()
    x, y = net.input(2, 4, 5), net.input(2, 5, 4)
    normal = net.op(
        "MVN", x, net.constant([-1]), version="opset6", eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True
    )
    agrees(net.model(net.op("Add", normal, net.transpose(net.op("Exp", y), 0, 2, 1))), net.shapes)


@pytest.mark.parametrize("shape", [(2, 1, 5), (2, 4, 1), (1, 4, 5), (4, 5), (5,)])
def test_a_product_and_a_computed_operand(shape: tuple[int, ...]) -> None:
    net = Net()
    x, e = net.input(2, 4, 6), net.input(*shape)
    y = net.op("MatMul", x, net.weights(6, 5), transpose_a=False, transpose_b=False)
    agrees(net.model(net.op("Add", y, net.op("Exp", e))), net.shapes)


@pytest.mark.parametrize("turned", [False, True])
def test_convolutions_and_computed_operands(turned: bool) -> None:
    net = Net()
    x, e, f = net.input(2, 6, 8, 9), net.input(2, 6, 1, 9), net.input(2, 8, 9, 6)
    other = net.transpose(net.op("Exp", f), 0, 3, 1, 2) if turned else net.op("Exp", e)
    outputs = [
        net.op("Add", y, other) for y in (net.conv(x, 6, 6), net.conv(x, 6, 6, 3, **PAD), net.depthwise(x, 6, **PAD))
    ]
    agrees(net.model(*outputs), net.shapes)


@pytest.mark.parametrize("kind", ["mvn", "rms", "softmax"])
@pytest.mark.parametrize("operation", ["Add", "Multiply"])
def test_a_normalisation_added_to_its_input(operation: str, kind: str) -> None:
    net = Net()
    y = net.op("Sin", net.input(2, 4, 30))
    if kind == "mvn":
        normal = net.op(
            "MVN", y, net.constant([-1]), version="opset6", eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True
        )
    elif kind == "softmax":
        normal = net.op("SoftMax", y, axis=2)
    else:
        mean = net.op("ReduceMean", net.op("Multiply", y, y), net.constant([-1]), keep_dims=True)
        root = net.op("Sqrt", net.op("Add", mean, net.constant(np.float32(1e-5))))
        normal = net.op("Divide", y, root)
    agrees(net.model(net.op(operation, normal, y)), net.shapes)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceMax", "ReduceSum"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (3,), (2, 3), (1, 2), (0, 1), (1, 2, 3)])
def test_reductions_of_a_convolution(axes: tuple[int, ...], kind: str, keep: bool) -> None:
    net = Net()
    y = net.conv(net.input(2, 3, 6, 7), 3, 5)
    agrees(net.model(net.op(kind, y, net.constant(list(axes)), keep_dims=keep)), net.shapes)


def test_a_sequence_of_transposed_data() -> None:
    net = Net()
    x, h = net.input(1, 5, 7), net.input(1, 1, 4)
    w, r, b = net.weights(1, 4, 5), net.weights(1, 4, 4), net.weights(1, 4)
    y = net.op(
        "RNNSequence", net.transpose(net.op("Exp", x), 0, 2, 1), h, net.constant([7]), w, r, b,
        version="opset5", outputs=2, hidden_size=4, direction="forward",
    )  # fmt: skip
    agrees(net.model(y), net.shapes)


def test_an_instance_normalisation_by_computed_operands() -> None:
    """As ONNX's InstanceNormalization is converted, here with an epsilon large enough to matter."""
    net = Net()
    x, g, b = net.input(2, 3, 4, 5), net.input(3), net.input(3)
    axes = net.constant([2, 3])
    normal = net.op("MVN", x, axes, version="opset6", eps=1e-2, eps_mode="inside_sqrt", normalize_variance=True)
    scaled = net.op("Multiply", normal, net.reshape(g, 1, 3, 1, 1))
    agrees(net.model(net.op("Add", scaled, net.reshape(b, 1, 3, 1, 1))), net.shapes)


def test_an_interleaved_rotary_embedding_of_some_dimensions() -> None:
    """As ONNX's RotaryEmbedding is converted: pairs are split, rotated, interleaved, and joined to the rest."""
    net = Net()
    x, cosine, sine = net.input(2, 4, 3, 8), net.input(2, 1, 3, 2), net.input(2, 1, 3, 2)
    turned, rest = net.ops("VariadicSplit", x, net.constant(-1), net.constant([4, 4]), outputs=2)
    halves = net.reshape(net.transpose(net.reshape(turned, 2, 4, 3, 2, 2), 0, 1, 2, 4, 3), 2, 4, 3, 4)
    a, b = net.ops("VariadicSplit", halves, net.constant(-1), net.constant([2, 2]), outputs=2)
    real = net.op("Subtract", net.op("Multiply", cosine, a), net.op("Multiply", sine, b))
    other = net.op("Add", net.op("Multiply", sine, a), net.op("Multiply", cosine, b))
    both = net.reshape(net.concat(real, other, axis=-1), 2, 4, 3, 2, 2)
    agrees(
        net.model(net.concat(net.reshape(net.transpose(both, 0, 1, 2, 4, 3), 2, 4, 3, 4), rest, axis=-1)), net.shapes
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("batch", [1, 2])
def test_transposed_convolutions_into_a_concat(batch: int, groups: int) -> None:
    net = Net()
    x, y = net.input(batch, 4, 5, 6), net.input(batch, 4, 10, 12)
    attributes = {"strides": "2,2", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    w = net.weights(groups, 4 // groups, 4 // groups, 2, 2)
    larger = net.op("GroupConvolutionBackpropData", net.op("ReLU", x), w, **attributes)
    turned = net.reshape(net.transpose(larger, 0, 3, 1, 2), batch, 4, 10, 12)
    outputs = [net.concat(net.op("ReLU", larger), y, axis=k) for k in (1, 2, 3)]
    agrees(net.model(*outputs, net.concat(turned, y)), net.shapes)


def test_patches_around_attention() -> None:
    """MobileViT's blocks: a map unfolded to patches, attention among them, folded back to a map, and concatenated."""
    net = Net()
    x = net.input(2, 8, 8, 8)
    y = net.conv(x, 8, 12)
    patches = net.reshape(net.transpose(net.reshape(y, 2 * 12 * 4, 2, 4, 2), 0, 2, 1, 3), 2, 12, 16, 4)
    tokens = net.reshape(net.transpose(patches, 0, 3, 2, 1), 8, 16, 12)
    layers = [net.op("MatMul", tokens, net.weights(12, 12), transpose_a=False, transpose_b=False) for _ in range(3)]
    heads = [net.transpose(net.reshape(head, 8, 16, 3, 4), 0, 2, 1, 3) for head in layers]
    mixed = net.op("ScaledDotProductAttention", *heads, version="opset13", causal=False)
    tokens = net.op("Add", tokens, net.reshape(net.transpose(mixed, 0, 2, 1, 3), 8, 16, 12))
    folded = net.transpose(net.reshape(tokens, 2, 4, 16, 12), 0, 3, 2, 1)
    folded = net.reshape(net.transpose(net.reshape(folded, 2 * 12 * 4, 4, 2, 2), 0, 2, 1, 3), 2, 12, 8, 8)
    agrees(net.model(net.concat(net.input(2, 8, 8, 8), folded)), net.shapes)
