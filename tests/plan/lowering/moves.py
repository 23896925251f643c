"""Operations that only move data."""

from __future__ import annotations

import numpy as np

from models import ir
from tests.plan.graphs import Net
from tests.plan.lowering.nodes import Build, of, with_constant


def _padded(net: Net, x: ir.Ref, begin: list[int], end: list[int], *value: ir.Ref, mode: str = "constant") -> ir.Ref:
    counts = [net.constant(begin), net.constant(end)]
    return net.op("Pad", x, *counts, *value, pad_mode=mode, version="opset12")


def pad(begin: list[int], end: list[int], *value: float, mode: str = "constant") -> Build:
    """A Pad of [2, 3, 5]."""
    return lambda net: _padded(
        net, net.input(2, 3, 5), begin, end, *(net.constant(np.float32(v)) for v in value), mode=mode
    )


def gather(indices: object, axis: int) -> Build:
    """A Gather of elements of [2, 6, 5] along an axis."""
    return lambda net: net.op(
        "Gather", net.input(2, 6, 5), net.constant(indices), net.constant(axis), version="opset8", batch_dims=0
    )


def strided(begin: list[int], end: list[int], strides: list[int] | None = None, **masks: str) -> Build:
    """A StridedSlice of [4, 6, 5]."""
    names = [f"{name}_mask" for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")]
    zeros = ",".join("0" * len(begin))
    return lambda net: net.op(
        "StridedSlice",
        net.input(4, 6, 5),
        *(net.constant(numbers) for numbers in (begin, end, strides or [1] * len(begin))),
        **(dict.fromkeys(names, zeros) | masks),
    )


def roll(shift: object, axes: list[int]) -> Build:
    """A Roll of [2, 3, 5]."""
    return lambda net: net.op("Roll", net.input(2, 3, 5), net.constant(shift), net.constant(axes), version="opset7")


CASES: dict[str, tuple[Build, list[str]]] = {
    "Split": (lambda net: net.ops("Split", net.input(2, 6), net.constant(-1), outputs=3, num_splits=3)[1], []),
    "VariadicSplit": (
        lambda net: net.ops("VariadicSplit", net.input(2, 6), net.constant(1), net.constant([1, -1]), outputs=2)[1],
        [],
    ),
    "Slice": (
        lambda net: net.op(
            "Slice", net.input(4, 6), *(net.constant(v) for v in ([1, -1], [4, 0], [2, -2], [0, 1])), version="opset8"
        ),
        [],
    ),
    "Slice without axes": (
        lambda net: net.op(
            "Slice", net.input(4, 6), *(net.constant(v) for v in ([1, 2], [4, 100], [1, 3])), version="opset8"
        ),
        [],
    ),
    "Slice of bounds computed": (
        lambda net: net.op(
            "Slice",
            net.input(4, 6),
            net.constant([1]),
            net.constant([3]),
            net.constant([1]),
            net.constant([1]),
            version="opset8",
        ),
        [],
    ),
    "Broadcast": (with_constant("Broadcast", (3, 1), [2, 3, 4], version="opset3", mode="numpy"), []),
    "Broadcast, both ways": (with_constant("Broadcast", (3, 1), [1, 4], version="opset3", mode="bidirectional"), []),
    "Broadcast, explicit": (
        lambda net: net.op(
            "Broadcast", net.input(3), net.constant([3, 2]), net.constant([0]), version="opset3", mode="explicit"
        ),
        ["compute"],
    ),
    "Transpose": (with_constant("Transpose", (2, 3, 4), [2, 0, 1]), []),
    "Transpose without an order": (with_constant("Transpose", (2, 3, 4), np.zeros(0, np.int64)), []),
    "Squeeze": (with_constant("Squeeze", (2, 1, 4), [1]), []),
    "Unsqueeze": (with_constant("Unsqueeze", (2, 4), [1, 3]), []),
    "Reshape of a transpose": (lambda net: net.reshape(net.transpose(net.input(2, 3, 4), 0, 2, 1), 2, 12), ["copy"]),
    "Pad": (pad([1, 0, 2], [0, 0, 1], 0.5), ["slices", "slices"]),
    "Pad, edge": (pad([2, 0, 1], [1, 0, 0], mode="edge"), ["slices", "slices"]),
    "Pad, reflect": (pad([1, 0, 2], [0, 2, 3], mode="reflect"), ["slices"] * 3),
    "Pad, symmetric": (pad([2, 0, 4], [1, 3, 0], mode="symmetric"), ["slices"] * 3),
    "Pad, cropping": (pad([-1, 0, -2], [0, -1, -1]), []),
    "Pad, cropping one end": (pad([-1, 0, -2], [1, 0, 3], mode="reflect"), ["slices", "slices"]),
    "Pad by nothing": (pad([0, 0, 0], [0, 0, 0]), []),
    "Pad by all that is cropped": (pad([-2, 0, 0], [1, 0, 0]), ["compute"]),
    "Pad of integers": (
        lambda net: _padded(net, net.op("Convert", net.input(2, 3), destination_type="i32"), [1, 0], [0, 1]),
        ["compute", "slices", "slices"],
    ),
    "Pad with a number computed": (lambda net: _padded(net, net.input(2, 3), [1, 0], [0, 1], net.input()), ["compute"]),
    "Gather of one": (gather(1, 1), []),
    "Gather by a step": (gather([-1, 3, 1], 1), []),
    "Gather of one by a vector": (gather([[-2]], 2), []),
    "Gather of a run": (gather([1, 2, 3], 2), []),
    "Gather of one again and again": (gather([2, 2], 1), ["slices selected"]),
    "Gather without a rule": (gather([0, 1, 3], 1), ["slices selected"]),
    "Gather outside": (gather([5, 6], 1), ["slices selected"]),
    "Gather of nothing": (gather(np.zeros(0, np.int64), 1), []),
    "StridedSlice": (strided([1, 0, -1], [3, 6, 0], [1, 2, -2]), []),
    "StridedSlice with masks": (
        strided(
            [1, 0, 0, 2],
            [2, 0, 0, 5],
            begin_mask="0,1,0,0",
            end_mask="0,1,0,1",
            ellipsis_mask="0,1,0,0",
            new_axis_mask="0,0,1,0",
        ),
        [],
    ),
    "StridedSlice that drops axes": (strided([-1, 2], [0, 3], shrink_axis_mask="1,0"), []),
    "DepthToSpace": (of("DepthToSpace", 2, 8, 3, 5, block_size=2, mode="blocks_first"), ["copy"]),
    "DepthToSpace, depth first": (of("DepthToSpace", 1, 8, 3, block_size=2, mode="depth_first"), ["copy"]),
    "SpaceToDepth": (of("SpaceToDepth", 2, 3, 4, 6, block_size=2, mode="blocks_first"), ["copy"]),
    "ShuffleChannels": (of("ShuffleChannels", 2, 6, 4, 5, axis=-3, group=3), ["copy"]),
    "BatchToSpace": (
        lambda net: net.op(
            "BatchToSpace", net.input(6, 4, 5), *map(net.constant, ([1, 3, 2], [0, 1, 0], [0, 0, 3])), version="opset2"
        ),
        ["copy"],
    ),
    "Reverse": (with_constant("Reverse", (2, 3, 4), [2, 0], mode="index"), []),
    "Roll": (roll([1, -2], [0, 2]), ["slices", "slices"]),
    "Roll, an axis twice": (roll([1, 2], [1, -2]), ["slices", "slices"]),
    "Roll by whole turns": (roll(6, [1]), []),
    "Tile": (with_constant("Tile", (2, 3), [2, 1, 3]), ["copy"]),
    "Tile of an axis of one": (with_constant("Tile", (2, 1, 3), [4, 1]), []),
    "Concat": (lambda net: net.concat(net.input(2, 3), net.input(2, 4), axis=-1), ["slices"]),
    "Concat, an input without elements": (
        lambda net: net.concat(net.input(2, 0), net.input(2, 4), net.input(2, 1), axis=1),
        ["slices"],
    ),
    "Concat, one input with elements": (lambda net: net.concat(net.input(2, 0), net.input(2, 4), axis=1), []),
}
