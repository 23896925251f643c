"""Small models with dynamic dims."""

from __future__ import annotations

import numpy as np

from irload.model import Model
from models.ir import Ref
from tests.plan.graphs import Net


def encoder(layers: int = 2, width: int = 32, heads: int = 4) -> Model:
    """Layers of a text encoder on [batch, length, width], with shape arithmetic as exporters write it."""
    net = Net()
    x = net.input(-1, -1, width)
    sizes = net.op("ShapeOf", x, version="opset3", output_type="i64")
    length = net.op("Gather", sizes, net.constant([1]), net.constant(0), version="opset8", batch_dims=0)
    table = net.weights(64, width)
    zero, one = net.constant([0]), net.constant([1])
    x = net.op("Add", x, net.op("Slice", table, zero, length, one, zero, version="opset8"))
    split = net.constant([0, 0, heads, width // heads])
    for _ in range(layers):
        q, k, v = (
            net.transpose(net.op("Reshape", linear(net, x, width, width), split, special_zero=True), 0, 2, 1, 3)
            for _ in range(3)
        )
        layer = net.op("ScaledDotProductAttention", q, k, v, version="opset13", causal=False)
        batch = net.op("Gather", sizes, net.constant([0]), net.constant(0), version="opset8", batch_dims=0)
        target = net.concat(batch, length, net.constant([width]), axis=0)
        joined = net.op("Reshape", net.transpose(layer, 0, 2, 1, 3), target, special_zero=False)
        x = normalized(net, net.op("Add", x, linear(net, joined, width, width)))
        inner = net.op("Gelu", linear(net, x, width, 2 * width), version="opset7", approximation_mode="ERF")
        x = normalized(net, net.op("Add", x, linear(net, inner, 2 * width, width)))
    return net.model(x)


def linear(net: Net, x: Ref, inner: int, outer: int) -> Ref:
    """A MatMul by constant weights."""
    weights = net.op("Multiply", net.weights(outer, inner), net.constant(np.float32(inner**-0.5)))
    return net.op("MatMul", x, weights, transpose_a=False, transpose_b=True)


def similarities(width: int = 32) -> Model:
    """Products of computed matrices, whose rows, columns and depth depend on the length of [1, length, width]."""
    net = Net()
    x = net.input(1, -1, width)
    scores = net.op("MatMul", x, x, transpose_a=False, transpose_b=True)
    scores = net.op("Multiply", net.op("ReLU", scores), net.constant(np.float32(1 / width)))
    return net.model(net.op("MatMul", scores, x, transpose_a=False, transpose_b=False))


def recurrent(width: int = 8, hidden: int = 6) -> Model:
    """A GRU over all of [batch, length, width], whose lengths are computed as exporters do."""
    net = Net()
    x = net.input(-1, -1, width)
    sizes = net.op("ShapeOf", x, version="opset3", output_type="i64")
    batch, length = (net.op("Gather", sizes, net.constant([k]), net.constant(0)) for k in (0, 1))
    state = net.op(
        "Broadcast",
        net.constant(np.zeros((1, 1, hidden), np.float32)),
        net.concat(batch, net.constant([1, hidden]), axis=0),
        version="opset3",
        mode="numpy",
    )
    lengths = net.op("Broadcast", length, batch, version="opset3", mode="numpy")
    weights = net.weights(1, 3 * hidden, width), net.weights(1, 3 * hidden, hidden), net.weights(1, 3 * hidden)
    y = net.op(
        "GRUSequence", x, state, lengths, *weights, version="opset5", outputs=2, hidden_size=hidden, direction="forward"
    )
    return net.model(net.op("Squeeze", y, net.constant([1])))


def normalized(net: Net, x: Ref) -> Ref:
    """A layer norm."""
    options = {"eps": 1e-5, "eps_mode": "inside_sqrt", "normalize_variance": True}
    return net.op("MVN", x, net.constant([-1]), version="opset6", **options)


def fully_convolutional() -> Model:
    """A small U-Net on [batch, 3, height, width]."""
    net = Net()
    x = net.input(-1, 3, -1, -1)
    pads = {"pads_begin": "1,1", "pads_end": "1,1"}
    first = net.op("ReLU", net.conv(x, 3, 8, 3, **pads))
    pooling = {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0", "rounding_type": "floor"}
    inner = net.op("ReLU", net.conv(net.op("MaxPool", first, **pooling), 8, 16, 3, **pads))
    sizes = net.op("ShapeOf", first, version="opset3", output_type="i64")
    space = net.op("Slice", sizes, *(net.constant([k]) for k in (2, 4, 1, 0)), version="opset8")
    how = {"mode": "nearest", "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "asymmetric"}
    how |= {"nearest_mode": "floor", "antialias": False, "pads_begin": "0", "pads_end": "0", "cube_coeff": -0.75}
    wide = net.op(
        "Interpolate", inner, space, net.constant(np.ones(2, np.float32)), net.constant([2, 3]), version="opset4", **how
    )
    return net.model(net.conv(net.concat(first, wide), 24, 4, 1))


def backbone() -> Model:
    """The kinds of convolutions of an image classifier on [1, 3, height, width], a pooling and an upsampled map."""
    net = Net()
    pads = {"pads_begin": "1,1", "pads_end": "1,1"}
    strided = {**pads, "strides": "2,2"}
    x = net.op("ReLU", net.conv(net.input(1, 3, -1, -1), 3, 16, 3, **strided))
    x = net.op("Add", net.depthwise(x, 16, **strided), net.weights(1, 16, 1, 1))
    x = net.op("Swish", net.conv(x, 16, 16, 3, **pads), version="opset4")
    pooling = {"strides": "1,1", "kernel": "3,3", "rounding_type": "floor", **pads}
    x = net.concat(x, net.op("MaxPool", x, **pooling))
    how = {"mode": "nearest", "shape_calculation_mode": "scales", "coordinate_transformation_mode": "asymmetric"}
    how |= {"nearest_mode": "floor", "antialias": False, "pads_begin": "0", "pads_end": "0", "cube_coeff": -0.75}
    twice = net.constant(np.full(2, 2, np.float32))
    wide = net.op("Interpolate", x, net.constant([0, 0]), twice, net.constant([2, 3]), version="opset4", **how)
    mean = net.op("ReduceMean", x, net.constant([2, 3]), keep_dims=True)
    return net.model(net.conv(wide, 32, 24, 1), net.conv(x, 32, 2, 5), mean)


def windowed(window: int = 4, width: int = 16) -> Model:
    """A layer of a Swin transformer on [batch, height, width, 16]: attention within windows of a padded map."""
    net = Net()
    x = net.input(-1, -1, -1, width)
    edge = net.constant(window)

    def sizes(x: Ref) -> list[Ref]:
        every = net.op("ShapeOf", x, version="opset3", output_type="i64")
        return [net.op("Gather", every, net.constant(k), net.constant(0), version="opset8") for k in range(3)]

    def shape(*dims: Ref | int) -> Ref:
        known = [net.constant([d]) if isinstance(d, int) else net.op("Unsqueeze", d, net.constant(0)) for d in dims]
        return net.concat(*known, axis=0)

    def view(x: Ref, *dims: Ref | int) -> Ref:
        return net.op("Reshape", x, shape(*dims), special_zero=False)

    batch, *space = sizes(x)
    missing = (net.op("Subtract", edge, net.op("FloorMod", n, edge)) for n in space)
    ends = shape(0, *(net.op("FloorMod", n, edge) for n in missing), 0)
    padded = net.op("Pad", x, net.constant([0, 0, 0, 0]), ends, net.constant(np.float32(0)), pad_mode="constant")
    _, *counts = (net.op("Floor", net.op("Divide", n, edge)) for n in sizes(padded))
    parts = view(padded, batch, counts[0], window, counts[1], window, width)
    windows = net.reshape(net.transpose(parts, 0, 1, 3, 2, 4, 5), -1, window * window, width)
    q, k, v = (linear(net, windows, width, width) for _ in range(3))
    seen = net.op("ScaledDotProductAttention", q, k, v, version="opset13", causal=False)
    parts = view(linear(net, seen, width, width), batch, *counts, window, window, width)
    _, *whole = sizes(padded)
    joined = view(net.transpose(parts, 0, 1, 3, 2, 4, 5), batch, *whole, width)
    starts, steps = net.constant([0, 0]), net.constant([1, 1])
    cut = net.op("Slice", joined, starts, shape(*space), steps, net.constant([1, 2]), version="opset8")
    return net.model(normalized(net, net.op("Add", x, cut)))


def codec(stride: int = 5, kernel: int = 10) -> Model:
    """A strided convolution of [batch, 1, samples], padded as in EnCodec so that it reads every sample."""
    net = Net()
    x = net.input(-1, 1, -1)
    sizes = net.op("ShapeOf", x, version="opset3", output_type="i64")
    samples = net.op("Gather", sizes, net.constant(2), net.constant(0), version="opset8")
    whole = net.op("Convert", net.op("Subtract", samples, net.constant(stride)), destination_type="f32")
    frames = net.op("Divide", whole, net.constant(np.float32(stride)))
    frames = net.op("Ceiling", net.op("Add", frames, net.constant(np.float32(1))))
    last = net.op("Subtract", net.op("Convert", frames, destination_type="i64"), net.constant(1))
    ideal = net.op("Add", net.op("Multiply", last, net.constant(stride)), net.constant(stride))
    extra = net.op("Unsqueeze", net.op("Subtract", ideal, samples), net.constant(0))
    begin, end = net.constant([0, 0, kernel - stride]), net.concat(net.constant([0, 0]), extra, axis=0)
    padded = net.op("Pad", x, begin, end, net.constant(np.float32(0)), pad_mode="constant")
    how = {"strides": str(stride), "dilations": "1", "pads_begin": "0", "pads_end": "0", "auto_pad": "explicit"}
    y = net.op("Convolution", padded, net.weights(8, 1, kernel), **how)
    return net.model(net.op("Convolution", net.op("Elu", y, alpha=1.0), net.weights(4, 8, 1), **how | {"strides": "1"}))


def pyramid() -> Model:
    """Boxes of a map [1, 3, height, width] of a quarter of the height and width, as a row."""
    net = Net()
    x = net.input(1, 3, -1, -1)
    for _ in range(2):
        x = net.conv(x, 3, 3, 3, pads_begin="1,1", pads_end="1,1", strides="2,2")
    return net.model(net.reshape(net.transpose(x, 0, 2, 3, 1), 1, -1))


def detector() -> Model:
    """A small SSD on [1, 3, height, width]: strided convolutions, an upsampled map, boxes of each cell.

    The last step is a view, so the compiled back end has a segment without kernels.
    """
    net = Net()
    image = net.input(1, 3, -1, -1)
    strided = {"pads_begin": "1,1", "pads_end": "1,1", "strides": "2,2"}
    fine = net.op("ReLU", net.conv(image, 3, 8, 3, **strided))
    coarse = net.op("ReLU", net.conv(fine, 8, 8, 3, **strided))
    how = {"mode": "nearest", "shape_calculation_mode": "scales", "coordinate_transformation_mode": "asymmetric"}
    how |= {"nearest_mode": "floor", "antialias": False, "pads_begin": "0", "pads_end": "0", "cube_coeff": -0.75}
    twice = net.constant(np.full(2, 2, np.float32))
    wide = net.op("Interpolate", coarse, net.constant([0, 0]), twice, net.constant([2, 3]), version="opset4", **how)
    head = net.conv(net.op("ReLU", net.conv(wide, 8, 8, 3, **strided)), 8, 6, 1)
    boxes, classes = (
        net.reshape(net.transpose(net.op("Slice", head, *_range(net, k, n), version="opset8"), 0, 2, 3, 1), 1, -1)
        for k, n in ((0, 4), (4, 6))
    )
    space = [
        net.op(
            "Slice", net.op("ShapeOf", x, version="opset3", output_type="i64"), *_range(net, 2, 4, 0), version="opset8"
        )
        for x in (head, image)
    ]
    cells = {"width": "8", "height": "8", "clip": True, "step": 8.0, "offset": 0.5, "variance": "0.1,0.1,0.2,0.2"}
    priors = net.op("Unsqueeze", net.op("PriorBoxClustered", *space, **cells), net.constant([0]))
    output = {"code_type": "caffe.PriorBoxParameter.CORNER", "keep_top_k": "20", "nms_threshold": 0.5}
    output |= {"confidence_threshold": -9.0, "normalized": True, "background_label_id": 0, "share_location": True}
    layer = net.op("DetectionOutput", boxes, classes, priors, version="opset8", top_k=40, **output)
    return net.model(net.reshape(layer, -1, 7), wide)


def _range(net: Net, first: int, last: int, axis: int = 1) -> list[Ref]:
    """The inputs of a Slice along one axis."""
    return [net.constant([n]) for n in (first, last, 1, axis)]
