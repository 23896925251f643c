"""Legacy layers, each with its definition in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import ceil
from typing import Any

import numpy as np

from irload.core.tensor import Array
from tests.read.legacy import Dims

rng = np.random.default_rng(7)


def weights(*dims: int) -> Array:
    """Random values that f16 represents exactly."""
    return rng.standard_normal(dims).astype(np.float16).astype(np.float32)


@dataclass
class Row:
    """A layer, and its definition: a function of the inputs that are not constants.

    `values`: values of inputs, random by default. `precisions`: of the output ports, as in v7.
    """

    type: str
    data: str
    inputs: Sequence[Dims]
    outputs: Sequence[Dims]
    expected: Callable[..., Any]
    blobs: dict[str, Array] = field(default_factory=dict)
    constants: dict[int, Array] = field(default_factory=dict)
    version: int = 6
    values: dict[int, Array] = field(default_factory=dict)
    precisions: Sequence[str] = ()


def conv(x: Array, w: Array, stride: int = 1, pad: int = 0, groups: int = 1, dilation: int = 1) -> Array:
    """A convolution of squares by its definition."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    reach = dilation * (w.shape[2] - 1) + 1
    size = [(n - reach) // stride + 1 for n in x.shape[2:]]
    out = np.zeros((x.shape[0], w.shape[0], *size), np.float32)
    per = w.shape[0] // groups
    for o, (i, j) in product(range(w.shape[0]), np.ndindex(*size)):
        c = o // per * w.shape[1]
        window = x[0, c : c + w.shape[1], i * stride :, j * stride :][:, :reach:dilation, :reach:dilation]
        out[0, o, i, j] = (window * w[o]).sum()
    return out


def pooled(x: Array, kernel: int, stride: int, size: int, how: Callable[[Array], Any], pad: int = 0) -> Array:
    out = np.zeros((*x.shape[:2], size, size), np.float32)
    filler = np.nan
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad + kernel), (pad, pad + kernel)], constant_values=filler)
    for c, i, j in product(range(x.shape[1]), range(size), range(size)):
        window = padded[0, c, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
        out[0, c, i, j] = how(window)
    return out


def spread(x: Array, values: Array) -> Array:
    return x * values.reshape(1, -1, *[1] * (x.ndim - 2))


W, B = weights(4, 3, 3, 3), weights(4)
GROUPED, FC, SCALE, SHIFT, SLOPES = weights(4, 2, 3, 3), weights(5, 12), weights(3), weights(3), weights(3)
DECONV = weights(3, 2, 2, 2)
KERNEL = 'kernel="3,3" output="4" strides="{s}" pads_begin="{p}" pads_end="{p}" dilations="{d}" group="{g}"'


def kernel(s: str = "1,1", p: str = "0,0", d: str = "1,1", g: int = 1) -> str:
    return f"<data {KERNEL.format(s=s, p=p, d=d, g=g)}/>"


def deconvolved(x: Array) -> Array:
    out = np.zeros((1, 2, 2 * x.shape[2], 2 * x.shape[3]), np.float32)
    for c, i, j in product(range(3), range(x.shape[2]), range(x.shape[3])):
        out[0, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += x[0, c, i, j] * DECONV[c]
    return out


def across(x: Array) -> Array:
    total = np.stack([(x[:, max(c - 1, 0) : c + 2] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return x / (2 + 0.5 / 3 * total) ** 0.75


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def yolo(x: Array, classes: Callable[[Array], Array]) -> Array:
    """Three anchors of four coordinates, an objectness and two classes."""
    parts = x.reshape(1, 3, 7, *x.shape[2:]).copy()
    for part in (slice(0, 2), slice(4, 5)):
        parts[:, :, part] = sigmoid(parts[:, :, part])
    parts[:, :, 5:] = classes(parts[:, :, 5:])
    return parts.reshape(x.shape)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def clustered() -> Array:
    """Boxes of 4 by 6 pixels at the centers of 2 by 2 cells of an image of 8 by 16 pixels, and variances."""
    boxes = [[(x - 2) / 16, (y - 3) / 8, (x + 2) / 16, (y + 3) / 8] for y, x in product((2, 6), (4, 12))]
    return np.stack([np.ravel(boxes), np.full(16, 0.1)])[None].astype(np.float32)


REGION = 'anchors="1,2,3,4,5,6" axis="1" end_axis="3" coords="4" classes="2" num="3" mask="0,1,2"'
NCHW = (1, 3, 6, 6)
ROWS = [
    Row("Convolution", kernel(p="1,1"), [NCHW], [(1, 4, 6, 6)], lambda x: conv(x, W, pad=1), {"weights": W}),
    Row(
        "Convolution",
        '<data kernel-x="3" kernel-y="3" stride-x="2" stride-y="2" pad-x="1" pad-y="1" output="4" group="1"/>',
        [NCHW],
        [(1, 4, 3, 3)],
        lambda x: conv(x, W, stride=2, pad=1) + B.reshape(1, 4, 1, 1),
        {"weights": W, "biases": B},
        version=2,
    ),
    Row(
        "Convolution",
        kernel(s="1,1", d="2,2", g=2),
        [(1, 4, 7, 7)],
        [(1, 4, 3, 3)],
        lambda x: conv(x, GROUPED, groups=2, dilation=2),
        {"weights": GROUPED},
    ),
    Row(
        "Deconvolution",
        '<data kernel="2,2" strides="2,2" pads_begin="0,0" pads_end="0,0" output="2" group="1"/>',
        [(1, 3, 3, 4)],
        [(1, 2, 6, 8)],
        deconvolved,
        {"weights": DECONV},
    ),
    Row(
        "Pooling",
        '<data kernel="3,3" strides="2,2" pads_begin="0,0" pads_end="0,0" pool-method="max" rounding_type="ceil"/>',
        [NCHW],
        [(1, 3, 3, 3)],
        lambda x: pooled(x, 3, 2, ceil(3 / 2) + 1, np.nanmax),
    ),
    Row(
        "Pooling",
        '<data kernel="2,2" strides="2,2" pads_begin="1,1" pads_end="1,1" pool-method="avg" exclude-pad="true"/>',
        [NCHW],
        [(1, 3, 4, 4)],
        lambda x: pooled(x, 2, 2, 4, np.nanmean, 1),
    ),
    Row(
        "Pooling",
        '<pooling_data kernel-x="2" kernel-y="2" stride-x="2" stride-y="2" pool-method="avg" exclude-pad="false" '
        'pad-x="1" pad-y="1"/>',
        [NCHW],
        [(1, 3, 4, 4)],
        lambda x: pooled(np.nan_to_num(x), 2, 2, 4, lambda w: np.nansum(w) / 4, 1),
        version=2,
    ),
    Row(
        "FullyConnected",
        '<data out-size="5"/>',
        [(1, 3, 2, 2)],
        [(1, 5)],
        lambda x: x.reshape(1, 12) @ FC.T,
        {"weights": FC},
    ),
    Row("ScaleShift", "", [NCHW], [NCHW], lambda x: spread(x, SCALE), {"weights": SCALE}),
    Row(
        "ScaleShift",
        '<data broadcast="0"/>',
        [NCHW],
        [NCHW],
        lambda x: spread(x, SCALE) + spread(np.ones_like(x), SHIFT),
        {"weights": SCALE, "biases": SHIFT},
    ),
    Row(
        "BatchNormalization",
        '<data epsilon="0.5"/>',
        [NCHW],
        [NCHW],
        lambda x: spread(x - spread(np.ones_like(x), SHIFT), 1 / np.sqrt(SCALE**2 + 0.5)),
        {"weights": SCALE**2, "biases": SHIFT},
    ),
    Row("ReLU", '<data negative_slope="0.1"/>', [NCHW], [NCHW], lambda x: np.where(x > 0, x, x * np.float32(0.1))),
    Row("PReLU", "", [NCHW], [NCHW], lambda x: np.where(x > 0, x, spread(x, SLOPES)), {"weights": SLOPES}),
    Row("Clamp", '<data min="-0.5" max="0.25"/>', [NCHW], [NCHW], lambda x: np.clip(x, -0.5, 0.25)),
    Row("ReLU6", "", [NCHW], [NCHW], lambda x: np.clip(x, 0, 6)),
    Row("Activation", '<data type="sigmoid"/>', [NCHW], [NCHW], lambda x: 1 / (1 + np.exp(-x))),
    Row("TanH", "", [NCHW], [NCHW], np.tanh),
    Row("SoftMax", '<data axis="3"/>', [NCHW], [NCHW], lambda x: softmax(x, 3)),
    Row("Power", '<data power="2" scale="3" shift="1"/>', [NCHW], [NCHW], lambda x: (3 * x + 1) ** 2),
    Row("Eltwise", '<data operation="sum" coeff="2,-1"/>', [NCHW, NCHW], [NCHW], lambda x, y: 2 * x - y),
    Row("Eltwise", '<data operation="mul"/>', [NCHW, NCHW, NCHW], [NCHW], lambda x, y, z: x * y * z),
    Row("Eltwise", '<data operation="max"/>', [NCHW, NCHW], [NCHW], np.maximum),
    Row("Eltwise", '<data operation="less"/>', [NCHW, NCHW], [NCHW], lambda x, y: (x < y).astype(np.float32)),
    Row(
        "Norm",
        '<data alpha="0.5" beta="0.75" k="2" local-size="3" region="across"/>',
        [(1, 5, 2, 2)],
        [(1, 5, 2, 2)],
        across,
    ),
    Row(
        "Normalize",
        '<data across_spatial="0" channel_shared="0" eps="0.001"/>',
        [NCHW],
        [NCHW],
        lambda x: spread(x / np.sqrt((x**2).sum(1, keepdims=True) + 0.001), SCALE),
        {"weights": SCALE},
    ),
    Row("Permute", '<data order="0,2,3,1"/>', [NCHW], [(1, 6, 6, 3)], lambda x: x.transpose(0, 2, 3, 1)),
    Row("Flatten", '<data axis="1"/>', [NCHW], [(1, 108)], lambda x: x.reshape(1, 108)),
    Row("Reshape", '<data dim="0,-1,6" axis="0" num_axes="-1"/>', [NCHW], [(1, 18, 6)], lambda x: x.reshape(1, 18, 6)),
    Row("Concat", '<data axis="2"/>', [NCHW, (1, 3, 2, 6)], [(1, 3, 8, 6)], lambda x, y: np.concatenate([x, y], 2)),
    Row("Slice", '<data axis="1"/>', [NCHW], [(1, 1, 6, 6), (1, 2, 6, 6)], lambda x: (x[:, :1], x[:, 1:])),
    Row("Crop", '<data axis="2,3" offset="1,2"/>', [NCHW], [(1, 3, 4, 3)], lambda x: x[:, :, 1:5, 2:5]),
    Row("Tile", '<data axis="1" tiles="2"/>', [NCHW], [(1, 6, 6, 6)], lambda x: np.tile(x, (1, 2, 1, 1))),
    Row("Copy", "", [NCHW], [NCHW], lambda x: x),
    Row("Convolution", kernel(), [NCHW, (4, 3, 3, 3)], [(1, 4, 4, 4)], conv, version=7),
    Row(
        "Convolution",
        kernel(),
        [NCHW, (4, 3, 3, 3), (4,)],
        [(1, 4, 4, 4)],
        lambda x, w, b: conv(x, w) + b.reshape(1, 4, 1, 1),
        version=7,
    ),
    Row(
        "Convolution",
        kernel(s="2,2").replace("/>", ' auto_pad="same_upper"/>'),
        [NCHW],
        [(1, 4, 3, 3)],
        lambda x: conv(np.pad(x, [(0, 0), (0, 0), (0, 1), (0, 1)]), W, stride=2),
        {"weights": W},
    ),
    Row(
        "Gather",
        "",
        [(3, 4, 2), (2,)],
        [(2, 4, 2)],
        lambda x: x[[2, 0]],
        constants={1: np.array([2, 0], np.int32)},
    ),
    Row(
        "Interpolate",
        '<data mode="nearest" align_corners="0" pad_beg="0" pad_end="0"/>',
        [NCHW],
        [(1, 3, 12, 12)],
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
    Row(
        "RegionYolo",
        f'<data {REGION} do_softmax="0"/>',
        [(1, 21, 2, 3)],
        [(1, 21, 2, 3)],
        lambda x: yolo(x, sigmoid),
    ),
    Row(
        "RegionYolo",
        f"<data {REGION}/>",
        [(1, 21, 2, 3)],
        [(1, 126)],
        lambda x: yolo(x, lambda c: softmax(c, 2)).reshape(1, 126),
    ),
    Row(
        "PriorBoxClustered",
        '<data width="4" height="6" step_w="8" step_h="4" offset="0.5" variance="0.1" clip="0"/>',
        [(1, 3, 2, 2), (1, 3, 8, 16)],
        [(1, 2, 16)],
        lambda x, image: clustered(),
    ),
    Row(
        "Pad",
        '<data pads_begin="0,0,1,0" pads_end="0,0,0,2" pad_mode="constant" pad_value="3"/>',
        [NCHW],
        [(1, 3, 7, 8)],
        lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=3),
    ),
    Row(
        "StridedSlice",
        '<data begin_mask="0,1,1,1" end_mask="0,0,1,1" new_axis_mask="0" shrink_axis_mask="0" ellipsis_mask="0"/>',
        [NCHW, (4,), (4,), (4,)],
        [(1, 2, 3, 2)],
        lambda x: x[:, 1:, 0:6:2, 1:5:2],
        constants={
            1: np.array([5, 1, 0, 1], np.int32),
            2: np.array([0, 0, 6, 5], np.int32),
            3: np.array([1, 1, 2, 2], np.int32),
        },
    ),
    Row(
        "Gather",
        '<data axis="1"/>',
        [NCHW, (2,)],
        [(1, 2, 6, 6)],
        lambda x: x[:, [2, 0]],
        constants={1: np.array([2, 0], np.int32)},
    ),
    Row("ArgMax", '<data axis="1" top_k="1"/>', [NCHW], [(1, 1, 6, 6)], lambda x: x.argmax(1)[:, None]),
    Row(
        "Resample",
        '<data type="caffe.ResampleParameter.NEAREST" factor="2" antialias="0"/>',
        [NCHW],
        [(1, 3, 12, 12)],
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
    Row(
        "Interp",
        '<data align_corners="1" pad_beg="0" pad_end="0"/>',
        [(1, 1, 2, 2)],
        [(1, 1, 3, 3)],
        lambda x: np.array([[1, 0], [0.5, 0.5], [0, 1]]) @ x @ np.array([[1, 0.5, 0], [0, 0.5, 1]]),
    ),
    Row(
        "MVN",
        '<data across_channels="0" normalize_variance="0" eps="1e-9"/>',
        [NCHW],
        [NCHW],
        lambda x: x - x.mean((2, 3), keepdims=True),
    ),
]
