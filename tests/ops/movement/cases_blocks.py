"""Random cases: blocks moved between space, depth and batch, orders along axes, patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.element import boolean, f32, f64, i32, i64
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import INDICES, pick, random_shape
from tests.ops.movement.material import data, index, signed, some_shape

MODES = ("blocks_first", "depth_first")


@cases("DepthToSpace", "opset1")
def depth_to_space(rng: Random, version: str) -> Case:
    rank, block = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    if rank == 5:
        block = min(block, 2)
    batch, depth, *space = random_shape(rng, rank, 1, 3)
    shape = (batch, depth * block ** (rank - 2), *space)
    return Case("DepthToSpace", version, [data(rng, shape)], {"block_size": block, "mode": pick(rng, MODES)})


@cases("SpaceToDepth", "opset1")
def space_to_depth(rng: Random, version: str) -> Case:
    block = int(rng.integers(1, 4))
    batch, depth, *space = random_shape(rng, (3, 5), 1, 3)
    shape = (batch, depth, *(n * block for n in space))
    return Case("SpaceToDepth", version, [data(rng, shape)], {"block_size": block, "mode": pick(rng, MODES)})


def _lists(rng: Random, *values: np.ndarray[Any, Any]) -> list[Input]:
    """Lists of one index type, constant or not."""
    element = pick(rng, INDICES)
    return [pick(rng, (const, const, const, param))(v, element) for v in values]


@cases("SpaceToBatch", "opset2")
def space_to_batch(rng: Random, version: str) -> Case:
    rank = int(rng.integers(4, 6))
    block = np.array([1, 1, *rng.integers(1, 4, rank - 2)])
    begin, end = rng.integers(0, 3, (2, rank))
    begin[:2] = end[:2] = 0
    shape = np.array(random_shape(rng, rank, 1, 3))
    shape = shape * block
    end += -(begin + end) % block
    inputs = [data(rng, tuple(shape.tolist())), *_lists(rng, block, begin, end)]
    return Case("SpaceToBatch", version, inputs, oracle="cpu")  # the reference crashes in many cases


@cases("BatchToSpace", "opset2")
def batch_to_space(rng: Random, version: str) -> Case:
    rank = int(rng.integers(3, 6))
    block = np.array([1, 1, *rng.integers(1, 3, rank - 2)])
    batch, *space = random_shape(rng, rank, 1, 3)
    shape = (batch * int(block.prod()), *space)
    room = (np.array(space) * block[1:] + 1) // 2
    room[0] = 1
    begin, end = (np.array([0, *rng.integers(0, room)]) for _ in range(2))
    return Case("BatchToSpace", version, [data(rng, shape), *_lists(rng, block, begin, end)])


@cases("ShuffleChannels", "opset1")
def shuffle_channels(rng: Random, version: str) -> Case:
    shape = list(random_shape(rng, (1, 5), 1, 3))
    axis, group = int(rng.integers(len(shape))), int(rng.integers(1, 4))
    shape[axis] *= group
    return Case(
        "ShuffleChannels", version, [data(rng, tuple(shape))], {"axis": signed(rng, axis, len(shape)), "group": group}
    )


@cases("Reverse", "opset1")
def reverse(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (1, 4))
    if rng.random() < 0.5:
        mask = pick(rng, (const, param))(rng.integers(0, 2, len(shape)).astype(bool), boolean)
        return Case("Reverse", version, [data(rng, shape), mask], {"mode": "mask"})
    axes = rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)]
    axes = np.array([signed(rng, int(axis), len(shape)) for axis in axes], np.int64)
    return Case("Reverse", version, [data(rng, shape), index(rng, axes)], {"mode": "index"})


@cases("ReverseSequence", "opset1")
def reverse_sequence(rng: Random, version: str) -> Case:
    shape = random_shape(rng, (2, 4), 1, 5)
    batch, seq = (int(a) for a in rng.permutation(len(shape))[:2])
    lengths = index(rng, rng.integers(1, shape[seq] + 1, shape[batch]))
    attributes = {"batch_axis": signed(rng, batch, len(shape)), "seq_axis": signed(rng, seq, len(shape))}
    return Case("ReverseSequence", version, [data(rng, shape), lengths], attributes)


@cases("Roll", "opset7")
def roll(rng: Random, version: str) -> Case:
    shape = some_shape(rng, (1, 4), empty=False)
    axes = [signed(rng, int(a), len(shape)) for a in rng.integers(0, len(shape), rng.integers(1, 4))]
    shift = rng.integers(-6, 7, len(axes))  # OpenVINO does not run a scalar shift of several axes
    return Case("Roll", version, [data(rng, shape), index(rng, shift), index(rng, axes)])


@cases("ExtractImagePatches", "opset3")
def extract_image_patches(rng: Random, version: str) -> Case:
    sizes, strides, rates = rng.integers(1, 4, (3, 2)).tolist()
    span = [(k - 1) * r + 1 for k, r in zip(sizes, rates, strict=True)]
    shape = (*random_shape(rng, 2, 1, 3), *(n + int(rng.integers(0, 5)) for n in span))
    attributes = {"sizes": sizes, "strides": strides, "rates": rates}
    attributes["auto_pad"] = pick(rng, ["valid", "same_upper", "same_lower"])
    return Case("ExtractImagePatches", version, [data(rng, shape)], attributes)


@cases("Col2Im", "opset15")
def col2im(rng: Random, version: str) -> Case:
    kernel, strides, dilations = rng.integers(1, 4, (3, 2))
    begin, end = rng.integers(0, 3, (2, 2))
    size = (kernel - 1) * dilations + 1 + rng.integers(0, 4, 2)
    counts = (size + begin + end - dilations * (kernel - 1) - 1) // strides + 1
    shape = (int(rng.integers(1, 4)) * int(kernel.prod()), int(counts.prod()))
    if rng.random() < 0.7:
        shape = (int(rng.integers(1, 3)), *shape)
    attributes = {"strides": strides.tolist(), "dilations": dilations.tolist()}
    attributes |= {"pads_begin": begin.tolist(), "pads_end": end.tolist()}
    index_type = pick(rng, [i32, i64])
    inputs = [data(rng, shape, pick(rng, (f32, f64, i32, i64))), const(size, index_type), const(kernel, index_type)]
    return Case("Col2Im", version, inputs, attributes)
