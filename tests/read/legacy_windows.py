"""Legacy layers of windows, each with its definition in NumPy: convolutions, poolings and resizing, with all pads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irload.core.tensor import Array
from tests.read.legacy import Dims
from tests.read.legacy_layers import FC, NCHW, B, Row, W, pooled, weights

FOUR = (1, 4, 6, 6)
W1, W3, W5, W6 = weights(2, 3, 3), weights(2, 2, 1, 2, 3), weights(2, 3, 5, 5), weights(4, 3, 1, 1)
GROUPED = weights(4, 2, 3, 3)
D3, D4 = weights(3, 2, 3, 3), weights(4, 1, 3, 3)
ROW_WEIGHTS = weights(5, 4)


def convolved(
    x: Array, w: Array, strides: Sequence[int], pads: Sequence[tuple[int, int]], dilations: Sequence[int] = ()
) -> Array:
    """A convolution of any number of axes by its definition; its groups follow from the shapes."""
    rank, groups = x.ndim - 2, x.shape[1] // w.shape[1]
    dilations = dilations or [1] * rank
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    windows = sliding_window_view(x, reach, tuple(range(2, 2 + rank)))
    steps = [slice(None, None, n) for n in (*strides, *dilations)]
    windows = windows[(slice(None), slice(None), *steps)]
    maps: list[Array] = []
    for o, kernel in enumerate(w):
        first = o * groups // w.shape[0] * w.shape[1]
        part = windows[:, first : first + w.shape[1]]
        maps.append((part * kernel.reshape(w.shape[1], *[1] * rank, *w.shape[2:])).sum((1, *range(-rank, 0))))
    return np.stack(maps, 1)


def transposed(x: Array, w: Array, stride: int, begin: int, size: Sequence[int], groups: int = 1) -> Array:
    """A transposed convolution of images, cropped to `size` rows and columns from `begin` on."""
    per = w.shape[1]
    whole = np.zeros((x.shape[0], per * groups, 40, 40), np.float32)
    for c, i, j in np.ndindex(*x.shape[1:]):
        to = c * groups // x.shape[1] * per
        y, z = i * stride, j * stride
        whole[:, to : to + per, y : y + w.shape[2], z : z + w.shape[3]] += x[0, c, i, j] * w[c]
    return whole[:, :, begin : begin + size[0], begin : begin + size[1]]


def conv(data: str, w: Array, inputs: Dims, outputs: Dims, expected: Callable[..., Any]) -> Row:
    return Row("Convolution", f'<data {data} output="{w.shape[0]}"/>', [inputs], [outputs], expected, {"weights": w})


def deconv(data: str, w: Array, inputs: Dims, outputs: Dims, begin: int, stride: int, groups: int = 1) -> Row:
    return Row(
        "Deconvolution",
        f'<data kernel="3,3" strides="{stride},{stride}" output="{outputs[1]}" group="{groups}" {data}/>',
        [inputs],
        [outputs],
        lambda x: transposed(x, w, stride, begin, outputs[2:], groups),
        {"weights": w},
    )


CONVOLUTIONS = [
    conv(
        'kernel="3" strides="2" pads_begin="1" pads_end="0" dilations="1"',
        W1,
        (1, 3, 8),
        (1, 2, 4),
        lambda x: convolved(x, W1, [2], [(1, 0)]),
    ),
    conv(
        'kernel-z="1" kernel-y="2" kernel-x="3" stride-y="2" dilation-y="2" pad-z="0" pad-y="1" pad-x="1" '
        'pad-back="1" pad-b="0" pad-r="2"',
        W3,
        (1, 2, 3, 4, 5),
        (1, 2, 4, 2, 6),
        lambda x: convolved(x, W3, [1, 2, 1], [(0, 1), (1, 0), (1, 2)], [1, 2, 1]),
    ),
    conv('kernel="3" strides="2" pads_begin="1" pads_end="1"', W, NCHW, (1, 4, 3, 3), lambda x: strided(x, W, 1, 1)),
    conv('kernel="5,5" strides="2,2" auto_pad="same_upper"', W5, NCHW, (1, 2, 3, 3), lambda x: strided(x, W5, 1, 2)),
    conv('kernel="5,5" strides="2,2" auto_pad="same_lower"', W5, NCHW, (1, 2, 3, 3), lambda x: strided(x, W5, 2, 1)),
    conv('kernel="1,1" strides="2,2" auto_pad="same_upper"', W6, NCHW, (1, 4, 3, 3), lambda x: strided(x, W6, 0, 0)),
    conv('kernel="1,1" strides="2,2" auto_pad="same_lower"', W6, NCHW, (1, 4, 3, 3), lambda x: strided(x, W6, 0, 0)),
    conv(
        'kernel="3,3" pads_begin="1,1" pads_end="1,1" auto_pad="valid"',
        W,
        NCHW,
        (1, 4, 4, 4),
        lambda x: convolved(x, W, [1, 1], [(0, 0)] * 2),
    ),
    # If the declared sizes contradict the pads, the sizes are used.
    conv('kernel="3,3" strides="2,2"', W, NCHW, (1, 4, 3, 3), lambda x: strided(x, W, 0, 1)),
    conv('kernel="3,3" pads_begin="1,1" pads_end="0,0"', W, NCHW, FOUR, lambda x: strided(x, W, 1, 1, 1)),
    Row(
        *("Convolution", '<data kernel="3,3" output="4" group="2"/>', [(1, 4, 5, 5), (4, 2, 3, 3)], [(1, 4, 3, 3)]),
        lambda x, w: convolved(x, w, [1, 1], [(0, 0)] * 2),
        version=7,
    ),
    Row(
        *("Convolution", '<data kernel="3,3" output="4" group="2"/>', [(1, 4, 5, 5)], [(1, 4, 3, 3)]),
        lambda x: convolved(x, GROUPED, [1, 1], [(0, 0)] * 2) + B.reshape(1, 4, 1, 1),
        {"weights": GROUPED, "biases": B},
    ),
    deconv('pads_begin="1,1" pads_end="1,1"', D3, (1, 3, 3, 4), (1, 2, 5, 7), 1, 2),
    deconv('pads_begin="1,1" pads_end="1,1"', D3, (1, 3, 3, 4), (1, 2, 6, 8), 1, 2),
    deconv("", D3, (1, 3, 3, 4), (1, 2, 10, 12), 0, 3),
    deconv("", D3, (1, 3, 3, 4), (1, 2, 9, 13), 0, 3),
    deconv('auto_pad="same_upper"', D3, (1, 3, 3, 4), (1, 2, 6, 8), 0, 2),
    deconv('auto_pad="same_lower"', D3, (1, 3, 3, 4), (1, 2, 6, 8), 1, 2),
    deconv("", D4, (1, 4, 3, 3), (1, 2, 7, 7), 0, 2, groups=2),
    Row("FullyConnected", '<data out-size="5"/>', [(2, 12)], [(2, 5)], lambda x: x @ FC.T, {"weights": FC}),
    Row(
        *("FullyConnected", '<data out-size="5"/>', [(1, 3, 4)], [(1, 3, 5)], lambda x: x @ ROW_WEIGHTS.T),
        {"weights": ROW_WEIGHTS},
    ),
    Row(
        *("FullyConnected", '<data out-size="5"/>', [(2, 3, 2, 2)], [(2, 3, 5)]),
        lambda x: x.reshape(2, 3, 4) @ ROW_WEIGHTS.T + FC[:, 0],
        {"weights": ROW_WEIGHTS, "biases": np.ascontiguousarray(FC[:, 0])},
    ),
    Row("FullyConnected", '<data out-size="5"/>', [(2, 12), (5, 12)], [(2, 5)], lambda x, w: x @ w.T, version=7),
]


def strided(x: Array, w: Array, begin: int, end: int, stride: int = 2) -> Array:
    return convolved(x, w, [stride, stride], [(begin, end)] * 2)


POOL = 'kernel="3,3" strides="2,2" pads_begin="1,1" pads_end="1,1"'


def padded(x: Array) -> Array:
    return np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])


def pool(data: str, outputs: Dims, expected: Callable[..., Any], inputs: Dims = NCHW) -> Row:
    return Row("Pooling", f"<data {data}/>", [inputs], [outputs], expected)


def by_quadrant(x: Array, box: Array) -> Array:
    """The means of four maps, each over one of the four quadrants."""
    means = pooled(x, 3, 3, 2, np.nanmean)
    return np.stack([means[:, k, k // 2, k % 2] for k in range(4)], 1).reshape(1, 1, 2, 2)


POOLINGS = [
    pool('kernel="2,2" strides="2,2"', (1, 3, 3, 3), lambda x: pooled(x, 2, 2, 3, np.nanmax)),
    pool(f'{POOL} pool-method="AVG"', (1, 3, 3, 3), lambda x: pooled(padded(x), 3, 2, 3, np.mean)),
    # The fourth windows reach beyond the padding.
    pool(f'{POOL} pool-method="avg"', (1, 3, 4, 4), lambda x: pooled(padded(x), 3, 2, 4, lambda w: np.nansum(w) / 9)),
    pool(f'{POOL} pool-method="avg" exclude-pad="1"', (1, 3, 4, 4), lambda x: pooled(x, 3, 2, 4, np.nanmean, 1)),
    pool(
        'kernel="3,3" strides="2,2" pool-method="avg" exclude-pad="false"',
        (1, 3, 3, 3),
        lambda x: pooled(x, 3, 2, 3, np.nanmean),
    ),
    pool(
        'kernel="3,3" strides="2,2" auto_pad="same_upper" pool-method="avg" exclude-pad="1"',
        (1, 3, 3, 3),
        lambda x: pooled(x, 3, 2, 3, np.nanmean),
    ),
    pool(
        'kernel="2" strides="2" pads_begin="1" pads_end="1"',
        (1, 2, 3),
        lambda x: np.stack([x[..., 0], x[..., 1:3].max(-1), x[..., 3]], -1),
        (1, 2, 4),
    ),
    Row(
        *("ROIPooling", '<data pooled_h="2" pooled_w="2" spatial_scale="1" method="MAX"/>', [NCHW, (1, 5)]),
        *([(1, 3, 2, 2)], lambda x, box: pooled(x, 3, 3, 2, np.nanmax)),
        values={1: np.array([[0, 0, 0, 5, 5]], np.float32)},
    ),
    Row(
        *("PSROIPooling", '<data output_dim="1" group_size="2" spatial_scale="1" mode="average"/>'),
        *([(1, 4, 6, 6), (1, 5)], [(1, 1, 2, 2)], by_quadrant),
        values={1: np.array([[0, 0, 0, 5, 5]], np.float32)},
    ),
]


HALF_PIXEL = np.array([[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]])
ASYMMETRIC = np.array([[1, 0], [0.5, 0.5], [0, 1], [0, 1]])
CORNERS = np.array([[1, 0], [0.5, 0.5], [0, 1]])
SMOOTH = np.array([[0.75, 0.75, 0.25, 0], [0, 0.25, 0.75, 0.75]]) / 1.75
PAIRS = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
FINE = np.maximum(1 - np.abs(np.arange(9)[:, None] / 2 - np.arange(5)), 0)


def resize(type: str, data: str, matrix: Array, pads: tuple[int, int] = (0, 0)) -> Row:
    size = matrix.shape[1] - sum(pads)
    return Row(
        *(type, f"<data {data}/>", [(1, 2, size, size)], [(1, 2, *matrix.shape[:1] * 2)]),
        lambda x: matrix @ np.pad(x, [(0, 0), (0, 0), pads, pads]) @ matrix.T,
    )


RESIZING = [
    resize("Resample", 'type="LINEAR"', HALF_PIXEL),
    resize("Resample", 'type="caffe.ResampleParameter.LINEAR" antialias="0"', PAIRS),
    resize("Resample", 'type="LINEAR" antialias="1"', SMOOTH),
    resize("Interp", "", CORNERS),
    resize("Interp", 'align_corners="0"', ASYMMETRIC),
    resize("Interpolate", "", ASYMMETRIC),
    resize("Interpolate", 'align_corners="1"', CORNERS),
    resize("Interp", 'pad_beg="1" pad_end="2"', FINE, (1, 2)),
    Row(
        *("Interpolate", '<data mode="nearest"/>', [(1, 1, 2, 2)], [(1, 1, 6, 6)]),
        lambda x: x.repeat(3, 2).repeat(3, 3),
    ),
    Row("UpSampling", "", [NCHW], [(1, 3, 12, 12)], lambda x: x.repeat(2, 2).repeat(2, 3)),
]

ROWS = [*CONVOLUTIONS, *POOLINGS, *RESIZING]
