"""Legacy layers that move or choose values, each with its definition in NumPy."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from tests.read.legacy_layers import NCHW, REGION, Row, softmax, yolo

INDICES = np.array([[2, 0, 3]], np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def one_hot(indices: Array, on: float = 1, off: float = 0) -> Array:
    return np.where(indices[..., None] == np.arange(4), on, off).astype(np.float32)


def in_order(x: Array, axis: int, count: int) -> tuple[Array, Array]:
    """The largest values, and their indices."""
    order = np.argsort(-x, axis).take(range(count), axis)
    return np.take_along_axis(x, order, axis), order


def largest(x: Array) -> Array:
    """The indices and the values of the largest two of each row: [rows, 2, 2]."""
    values, order = in_order(x.reshape(2, -1), 1, 2)
    return np.stack([order, values], 1)


def blocks(x: Array) -> Array:
    """DepthToSpace of blocks of 2 by 2 from (1, 8, 2, 3), blocks first."""
    return x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)


def depth_first(x: Array) -> Array:
    return x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)


def reversed_rows(x: Array) -> Array:
    out = x.copy()
    out[0, :2], out[1, :4] = x[0, 1::-1], x[1, ::-1]
    return out


def boxes() -> Array:
    """Squares of 4 pixels at the centers of 2 by 2 cells of an image of 8 by 16 pixels, and variances."""
    squares = [[(x - 2) / 16, (y - 2) / 8, (x + 2) / 16, (y + 2) / 8] for y in (2, 6) for x in (4, 12)]
    return np.stack([np.ravel(squares), np.full(16, 0.1)])[None].astype(np.float32)


ROWS = [
    Row("Squeeze", "", [(1, 3, 1, 6), (1,)], [(1, 3, 6)], lambda x: x[:, :, 0], constants={1: ints(2)}),
    Row("Unsqueeze", "", [(3, 6), (1,)], [(3, 1, 6)], lambda x: x[:, None], constants={1: ints(1)}),
    Row("Concat", "", [(2, 3), (2, 1)], [(2, 4)], lambda x, y: np.concatenate([x, y], 1)),
    Row("Split", "", [(2, 3)], [(2, 1), (2, 2)], lambda x: (x[:, :1], x[:, 1:])),
    Row(
        *("Split", '<data axis="2"/>', [NCHW], [(1, 3, 1, 6), (1, 3, 2, 6), (1, 3, 3, 6)]),
        lambda x: (x[:, :, :1], x[:, :, 1:3], x[:, :, 3:]),
    ),
    Row("Crop", '<data axis="3" crop_begin="2"/>', [NCHW], [(1, 3, 6, 3)], lambda x: x[..., 2:5]),
    Row("Crop", '<data axis="0,1" offset="1,1"/>', [(3, 4, 2)], [(2, 2, 2)], lambda x: x[1:3, 1:3]),
    Row("Tile", '<data axis="-1" tiles="2"/>', [(2, 3)], [(2, 6)], lambda x: np.tile(x, (1, 2))),
    Row("Tile", '<data axis="-2" tiles="3"/>', [(2, 3)], [(6, 3)], lambda x: np.tile(x, (3, 1))),
    Row(
        *("ShuffleChannels", '<data group="3"/>', [(1, 6, 2)], [(1, 6, 2)]),
        lambda x: x.reshape(1, 3, 2, 2).transpose(0, 2, 1, 3).reshape(1, 6, 2),
    ),
    Row(
        *("ShuffleChannels", '<data axis="2" group="2"/>', [(1, 2, 4)], [(1, 2, 4)]),
        lambda x: x[:, :, [0, 2, 1, 3]],
    ),
    Row("ShuffleChannels", "", [(1, 6, 2)], [(1, 6, 2)], lambda x: x),
    Row("DepthToSpace", '<data block_size="2"/>', [(1, 8, 2, 3)], [(1, 2, 4, 6)], blocks),
    Row("DepthToSpace", '<data block_size="2" mode="depth_first"/>', [(1, 8, 2, 3)], [(1, 2, 4, 6)], depth_first),
    Row(
        *("SpaceToDepth", '<data block_size="2"/>', [(1, 2, 4, 6)], [(1, 8, 2, 3)]),
        lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3),
    ),
    Row("SpaceToDepth", "", [NCHW], [NCHW], lambda x: x),
    Row("Broadcast", "", [(1, 3), (2,)], [(2, 3)], lambda x: np.tile(x, (2, 1)), constants={1: ints(2, 3)}),
    Row("ReverseSequence", "", [(2, 4, 3), (2,)], [(2, 4, 3)], reversed_rows, constants={1: ints(2, 4)}),
    Row(
        *("ReverseSequence", '<data batch_axis="1" seq_axis="0"/>', [(4, 2, 3), (2,)], [(4, 2, 3)]),
        lambda x: reversed_rows(x.swapaxes(0, 1)).swapaxes(0, 1),
        constants={1: ints(2, 4)},
    ),
    Row("ShapeOf", "", [(2, 5)], [(2,)], lambda x: np.array([2, 5])),
    Row("ShapeOf", "", [(2, 5)], [(2,)], lambda x: np.array([2, 5]), version=7, precisions=["I32"]),
    Row("ShapeOf", "", [(2, 5)], [(2,)], lambda x: np.array([2, 5]), version=7, precisions=["I64"]),
    Row("OneHot", '<data depth="4"/>', [(1, 3)], [(1, 3, 4)], one_hot, values={0: INDICES}),
    Row(
        *("OneHot", '<data depth="4" axis="1" on_value="2" off_value="-1"/>', [(1, 3)], [(1, 4, 3)]),
        lambda i: one_hot(i, 2, -1).swapaxes(1, 2),
        values={0: INDICES},
    ),
    Row("Gather", "", [(4, 2), (1, 3)], [(1, 3, 2)], lambda x, i: x[[[2, 0, 3]]], values={1: INDICES}),
    Row("Gather", "", [(4, 4), (2,)], [(2, 4)], lambda x: x[[3, 1]], constants={1: ints(3, 1)}),
    Row("Pad", '<data pads_begin="0,1" pads_end="2,0"/>', [(2, 3)], [(4, 4)], lambda x: np.pad(x, [(0, 2), (1, 0)])),
    Row(
        *("Pad", '<data pads_begin="0,1" pads_end="1,0" pad_mode="reflect"/>', [(2, 3)], [(3, 4)]),
        lambda x: np.pad(x, [(0, 1), (1, 0)], mode="reflect"),
    ),
    Row(
        *("StridedSlice", '<data shrink_axis_mask="0,1"/>', [NCHW, (3,), (3,)], [(1, 2, 6)]),
        lambda x: x[:, 1, 2:4],
        constants={1: ints(0, 1, 2), 2: ints(1, 2, 4)},
    ),
    Row(
        *("StridedSlice", '<data new_axis_mask="1"/>', [(3, 4), (2,), (2,)], [(1, 2, 4)]),
        lambda x: x[None, 1:3],
        constants={1: ints(0, 1), 2: ints(0, 3)},
    ),
    Row("ArgMax", '<data top_k="2"/>', [(2, 3, 4)], [(2, 1, 2)], lambda x: largest(x)[:, :1]),
    Row("ArgMax", "", [(2, 3, 4)], [(2, 1, 1)], lambda x: largest(x)[:, :1, :1]),
    Row("ArgMax", '<data top_k="2" out_max_val="1"/>', [(2, 3, 4)], [(2, 2, 2)], largest),
    Row(
        *("ArgMax", '<data top_k="2" axis="2" out_max_val="1"/>', [NCHW], [(1, 3, 2, 6)]),
        lambda x: in_order(x, 2, 2)[0],
    ),
    Row(
        *("TopK", '<data axis="1" mode="max" sort="value"/>', [(2, 4), ()], [(2, 3), (2, 3)]),
        lambda x: in_order(x, 1, 3),
        constants={1: np.array(3, np.int32)},
    ),
    Row(
        *("TopK", '<data axis="1" mode="max" sort="value"/>', [(2, 4), ()], [(2, 3), (2, 3)]),
        lambda x: in_order(x, 1, 3),
        constants={1: np.array(3, np.int32)},
        version=7,
        precisions=["FP32", "I32"],
    ),
    Row("Convert", '<data precision="I32"/>', [NCHW], [NCHW], np.trunc),
    Row("Dropout", "", [NCHW], [NCHW], lambda x: x),
    Row("Identity", "", [NCHW], [NCHW], lambda x: x),
    Row(
        *("ScatterUpdate", "", [(3, 2), (2,), (2, 2), ()], [(3, 2)]),
        lambda x, new: np.stack([new[1], x[1], new[0]]),
        constants={1: ints(2, 0), 3: np.array(0, np.int32)},
    ),
    Row(
        *("BatchToSpace", "", [(2, 3, 2), (3,), (3,), (3,)], [(1, 3, 4)]),
        lambda x: x.transpose(1, 2, 0).reshape(1, 3, 4),
        constants={1: ints(1, 1, 2), 2: ints(0, 0, 0), 3: ints(0, 0, 0)},
    ),
    Row(
        *("SpaceToBatch", "", [(1, 3, 4), (3,), (3,), (3,)], [(2, 3, 2)]),
        lambda x: x.reshape(3, 2, 2).transpose(2, 0, 1),
        constants={1: ints(1, 1, 2), 2: ints(0, 0, 0), 3: ints(0, 0, 0)},
    ),
    Row(
        *("CTCGreedyDecoder", "", [(4, 1, 3), (4, 1)], [(1, 4, 1, 1)]),
        lambda x, mask: np.array([0, 1, -1, -1]).reshape(1, 4, 1, 1),
        values={0: np.eye(3, dtype=np.float32)[[0, 0, 2, 1]][:, None], 1: np.ones((4, 1), np.float32)},
    ),
    Row(
        *("CTCGreedyDecoder", '<data ctc_merge_repeated="0"/>', [(4, 1, 3), (4, 1)], [(1, 4, 1, 1)]),
        lambda x, mask: np.array([0, 0, 1, -1]).reshape(1, 4, 1, 1),
        values={0: np.eye(3, dtype=np.float32)[[0, 0, 2, 1]][:, None], 1: np.ones((4, 1), np.float32)},
    ),
    Row(
        "RegionYolo", f"<data {REGION}/>", [(1, 21, 2, 3)], [(1, 21, 2, 3)], lambda x: yolo(x, lambda c: softmax(c, 2))
    ),
    Row(
        *("PriorBox", '<data min_size="4" step="0" offset="0.5" variance="0.1" clip="0" flip="0"/>'),
        *([(1, 3, 2, 2), (1, 3, 8, 16)], [(1, 2, 16)], lambda x, image: boxes()),
    ),
    Row(
        *(
            "PriorBox",
            '<data min_size="4" img_h="8" img_w="16" step="0" offset="0.5" clip="0" variance="0.1"/>',
        ),
        *([(1, 3, 2, 2), (1, 3, 3, 5)], [(1, 2, 16)], lambda x, image: boxes()),
    ),
]
