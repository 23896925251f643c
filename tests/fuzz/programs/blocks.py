"""Blocks of layers as they occur in real networks."""

from __future__ import annotations

import numpy as np

from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.moves import transpose
from tests.fuzz.programs.operands import operand, recent_value, split_sizes
from tests.fuzz.programs.pointwise import unary
from tests.fuzz.programs.rows import layer_norm, rms_norm
from tests.fuzz.programs.tokens import linear
from tests.fuzz.programs.windows import batch_norm, bias, channels, convolution, grouped, max_pool, resize, spatial


def activated(b: Build, x: Value) -> Value:
    """A convolution, perhaps followed by a bias or norm, and by an activation."""
    y = grouped(b, x) if b.chance(0.3) else convolution(b, x)
    if b.chance(0.5):
        y = bias(b, y)
    elif b.chance(0.3):
        y = batch_norm(b, y)
    return unary(b, y) if b.chance(0.6) else y


def same_size(b: Build, x: Value, out: int | None = None) -> Value:
    """A convolution that keeps the spatial sizes."""
    kernel = (b.pick((1, 3, 3)),) * spatial(x)
    if b.chance(0.35) and out in (None, x.shape[1]):
        return grouped(b, x, depthwise=True, plain=True, kernel=kernel)
    return convolution(b, x, out or x.shape[1], kernel, plain=True)


def residual(b: Build, x: Value) -> Value:
    """x + f(x), with an activation anywhere."""
    y = same_size(b, b.op("ReLU", x) if b.chance(0.3) else x)
    y = unary(b, y) if b.chance(0.4) else y
    y = same_size(b, y, x.shape[1]) if b.chance(0.4) else y
    y = bias(b, y) if b.chance(0.4) else y
    y = b.bounded(b.add(x, y))
    return unary(b, y) if b.chance(0.5) else y


def diamond(b: Build, x: Value) -> Value:
    """Two or three paths from one value to one Concat or sum."""
    count = b.pick((2, 2, 3))
    if b.chance(0.5):
        ways = [same_size(b, x, x.shape[1]) if b.chance(0.8) else x for _ in range(count)]
        total = ways[0]
        for way in ways[1:]:
            total = b.bounded(b.add(total, way))
        return total
    ways = [way_of(b, x) for _ in range(count)]
    return b.concat(ways, 1)


def way_of(b: Build, x: Value) -> Value:
    """One path through a block: a convolution, a pooling, an activation, or nothing."""
    roll = b.rng.random()
    if roll < 0.6:
        y = same_size(b, x, channels(b, 12))
        return unary(b, y) if b.chance(0.5) else y
    if roll < 0.75:
        size = [3] * spatial(x)
        ones, pads = [1] * len(size), [1] * len(size)
        return b.op(
            "MaxPool",
            x,
            kernel=size,
            strides=ones,
            pads_begin=pads,
            pads_end=pads,
            rounding_type="floor",
            auto_pad="explicit",
        )
    return unary(b, x) if roll < 0.9 else x


def ghost(b: Build, x: Value) -> Value:
    """Concat(a, relu(depthwise(a))) of a 1×1 convolution a."""
    axes = spatial(x)
    a = convolution(b, x, channels(b, 16), (1,) * axes, plain=True) if b.chance(0.7) else x
    a = b.op("ReLU", a) if b.chance(0.5) else a
    cheap = grouped(b, a, depthwise=True, plain=True, kernel=(b.pick((1, 3, 3, 5)),) * axes)
    cheap = b.op("ReLU", cheap) if b.chance(0.6) else cheap
    return b.concat([a, cheap] if b.chance(0.8) else [cheap, a], 1)


def joined(b: Build, x: Value) -> Value:
    """Convolutions into a Concat along any axis, including width."""
    axis = b.pick((1, 1, *range(2, x.rank)))
    ways: list[Value] = []
    for _ in range(b.pick((2, 2, 3))):
        source = x if b.chance(0.7) else recent_value(b, lambda v: v.shape == x.shape and v.element is b.element)
        way = same_size(b, source, None if axis == 1 and b.chance(0.4) else 4)
        if way.shape[1] != 4 and axis != 1:
            way = convolution(b, way, 4, (1,) * spatial(x), plain=True)
        ways.append(unary(b, way) if b.chance(0.4) else way)
    return b.concat(ways, axis)


def parted(b: Build, x: Value) -> Value:
    """A Split whose parts go through convolutions (or not) into a Concat: CSP, ShuffleNet, Res2Net."""
    c = x.shape[1]
    if c < 2:
        raise DoesNotFit("one channel")
    parts = b.pick([p for p in (2, 3, 4) if p <= c])
    axis = b.const(np.int64(1))
    if c % parts == 0 and b.chance(0.6):
        pieces = b.many("Split", x, axis, num_splits=parts)
    else:
        pieces = b.many("VariadicSplit", x, axis, b.ints(*split_sizes(b, c, parts)))
    done: list[Value] = []
    for piece in pieces:
        if done and b.chance(0.3) and done[-1].shape == piece.shape:
            piece = b.add(piece, done[-1])
        y = same_size(b, piece) if b.chance(0.7) else piece
        done.append(unary(b, y) if b.chance(0.4) else y)
    if b.chance(0.3):
        done.append(pieces[0])
    return b.concat(done if b.chance(0.7) else done[::-1], 1)


def shuffle(b: Build, x: Value) -> Value:
    """A channel shuffle: Reshape, Transpose, Reshape; perhaps into a Concat."""
    n, c, *rest = x.shape
    if x.rank < 3:
        raise DoesNotFit("no channels")
    g = b.pick([g for g in range(1, c + 1) if c % g == 0])
    wide = b.reshape(x, n, g, c // g, *rest)
    y = b.reshape(b.transpose(wide, 0, 2, 1, *range(3, 3 + len(rest))), n, c, *rest)
    if b.chance(0.4):
        other = recent_value(
            b, lambda v: v.rank == x.rank and v.shape[0] == n and v.shape[2:] == x.shape[2:] and v.element is b.element
        )
        return b.concat([y, other] if b.chance(0.5) else [other, y], 1)
    return y


def squeeze_excite(b: Build, x: Value) -> Value:
    """x · sigmoid(conv(relu(conv(mean(x)))))."""
    axes = tuple(range(2, x.rank))
    c = x.shape[1]
    pooled = b.op("ReduceMean", x, b.ints(*axes), keep_dims=True)
    one = (1,) * spatial(x)
    y = b.op("ReLU", bias(b, convolution(b, pooled, max(c // 2, 1), one, plain=True)))
    y = convolution(b, y, c, one, plain=True)
    gate = b.op("Sigmoid", y) if b.chance(0.6) else b.op("HSigmoid", y, version="opset5")
    return b.mul(x, gate)


def inverted(b: Build, x: Value) -> Value:
    """An inverted residual: 1×1 convolution, depthwise, 1×1 convolution."""
    axes = spatial(x)
    one = (1,) * axes
    y = b.op("Clamp", bias(b, convolution(b, x, b.pick((4, 6, 8, 16)), one, plain=True)), min=0.0, max=6.0)
    y = grouped(b, y, depthwise=True)
    y = b.op("HSwish", y, version="opset4") if b.chance(0.3) else b.op("ReLU", y)
    y = convolution(b, y, x.shape[1], one, plain=True)
    return b.bounded(b.add(y, x)) if y.shape == x.shape else y


def pyramid(b: Build, x: Value) -> Value:
    """A smaller map upsampled, joined with the larger one, then perhaps a 1×1 convolution."""
    axes = spatial(x)
    if axes != 2 or min(x.shape[2:]) < 2:
        raise DoesNotFit("no map")
    low = b.op(
        "MaxPool",
        x,
        kernel=[2, 2],
        strides=[2, 2],
        pads_begin=[0, 0],
        pads_end=[0, 0],
        rounding_type="floor",
        auto_pad="explicit",
    )
    low = same_size(b, low, channels(b, 12)) if b.chance(0.7) else low
    data = {
        "mode": b.pick(("nearest", "linear_onnx", "linear")),
        "shape_calculation_mode": "sizes",
        "nearest_mode": "floor",
    }
    data |= {
        "coordinate_transformation_mode": b.pick(("asymmetric", "half_pixel", "align_corners")),
        "antialias": "false",
    }
    data |= {"pads_begin": "0", "pads_end": "0", "cube_coeff": "-0.75"}
    up = b.op(
        "Interpolate",
        low,
        b.ints(*x.shape[2:]),
        b.const(np.array([2.0, 2.0], np.float32)),
        b.ints(2, 3),
        version="opset4",
        **data,
    )
    both = b.concat([up, x] if b.chance(0.5) else [x, up], 1) if b.chance(0.7) else up
    return convolution(b, both, channels(b, 12), (1, 1), plain=True) if b.chance(0.6) else both


def unfolded(b: Build, x: Value) -> Value:
    """MobileViT's unfold, a block over the patches, and the fold back."""
    if x.rank != 4 or x.shape[2] % 2 or x.shape[3] % 2:
        raise DoesNotFit("odd map")
    n, c, h, w = x.shape
    if b.dynamic and b.chance(0.5):
        raise DoesNotFit("batch")
    y = b.reshape(x, n * c * h // 2, 2, w // 2, 2) if not b.dynamic else b.reshape(x, n, -1, 2, w // 2, 2)
    r = y.rank
    y = b.transpose(y, *range(r - 3), r - 2, r - 3, r - 1)
    y = b.reshape(y, n, c, h * w // 4, 4)
    y = b.transpose(y, 0, 3, 2, 1)
    if not b.dynamic:
        y = b.reshape(y, n * 4, h * w // 4, c)
    y = b.pick((layer_norm, linear_back, rms_norm, unary, transposed_twice))(b, y)
    if y.shape[-1] != c:
        raise DoesNotFit("other channels")
    y = b.reshape(y, n, 4, h * w // 4, c)
    y = b.transpose(y, 0, 3, 2, 1)
    y = b.reshape(y, n, c * h // 2, w // 2, 2, 2)
    y = b.transpose(y, 0, 1, 3, 2, 4)
    return b.reshape(y, n, c, h, w)


def linear_back(b: Build, x: Value) -> Value:
    """Two linear layers that keep the width."""
    return linear(b, b.op("ReLU", linear(b, x, 8)), x.shape[-1])


def transposed_twice(b: Build, x: Value) -> Value:
    """A transpose, a sum, and the transpose back."""
    y = b.op("ReLU", transpose(b, x))
    back = recent_value(b, lambda v: v.shape == x.shape) if b.chance(0.2) else x
    return b.add(back, x) if y.shape != x.shape else b.add(y, back)


def detector(b: Build, x: Value) -> Value:
    """The head of a YOLO: channels to anchors, a Transpose, per-channel arithmetic, a long Concat."""
    if x.rank != 4:
        raise DoesNotFit("no map")
    n, _, h, w = x.shape
    anchors, entries = b.pick((1, 2, 3)), b.pick((5, 6, 7, 22))
    y = convolution(b, x, anchors * entries, (1, 1), plain=True)
    y = b.reshape(y, n, anchors, entries, h, w)
    y = b.transpose(y, 0, 1, 3, 4, 2)
    y = b.op("Sigmoid", y) if b.chance(0.6) else y
    shape = b.pick(((1, anchors, 1, 1, entries), (entries,), (1, 1, h, w, 1), (1, anchors, h, w, 1)))
    y = b.mul(y, b.weights(*shape) if b.chance(0.5) else operand(b, y.shape))
    if b.chance(0.5):
        cut = b.number(1, entries - 1)
        first, second = b.many("VariadicSplit", y, b.const(np.int64(4)), b.ints(cut, entries - cut))
        first = b.add(b.mul(first, b.scalar(2.0)), b.weights(1, 1, h, w, 1))
        y = b.concat([first, second], 4)
    return b.reshape(y, n, -1, entries)


def patches(b: Build, x: Value) -> Value:
    """Patches of a map as tokens: a convolution with stride, a Reshape, a Transpose, a norm."""
    if x.rank != 4:
        raise DoesNotFit("no map")
    p = b.pick((1, 2, 2))
    e = b.pick((4, 6, 8, 12))
    y = b.op(
        "Convolution",
        x,
        b.weights(e, x.shape[1], p, p, fan=x.shape[1] * p * p),
        strides=[p, p],
        dilations=[1, 1],
        pads_begin=[0, 0],
        pads_end=[0, 0],
        auto_pad="explicit",
    )
    y = bias(b, y) if b.chance(0.5) else y
    y = b.transpose(b.reshape(y, y.shape[0], e, -1), 0, 2, 1)
    return layer_norm(b, y) if b.chance(0.4) else y


def pooled_head(b: Build, x: Value) -> Value:
    """A classifier: pooling, flattening, a linear layer."""
    y = max_pool(b, x) if b.chance(0.3) else b.op("ReduceMean", x, b.ints(*range(2, x.rank)), keep_dims=b.chance(0.5))
    y = b.reshape(y, y.shape[0], -1)
    return linear(b, y)


def resized_into(b: Build, x: Value) -> Value:
    """A 1×1 convolution of a resized map."""
    return convolution(b, resize(b, x), channels(b, 8), (1,) * spatial(x), plain=True)


def turned_norm(b: Build, x: Value) -> Value:
    """A norm plus a transposed residual, or plus the input of the norm."""
    y = layer_norm(b, x) if b.chance(0.6) else rms_norm(b, x)
    if b.chance(0.5):
        return b.add(y, x)
    if b.chance(0.4):
        return b.mul(y, x)
    order = [0, *(1 + int(k) for k in b.rng.permutation(x.rank - 1))] if x.rank > 1 else [0]
    back = [order.index(k) for k in range(x.rank)]
    other = b.parameter([x.shape[k] for k in order])
    return b.add(y, b.transpose(b.op("ReLU", other) if b.chance(0.5) else other, *back))
