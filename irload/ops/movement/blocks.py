"""Blocks of space moved to depth or batch and back, and shuffled channels: reshapes around a transpose."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.core import attribute as attr
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axis
from irload.core.tensor import Array, TensorType, length_of
from irload.errors import ShapeMismatch
from irload.ops.ports import require_integer, require_rank

BLOCK_MODES = ("blocks_first", "depth_first")


def divided(dim: Dim, divisor: int, name: str) -> Dim:
    """The dim divided by `divisor`. Raises ShapeMismatch if it contains no multiple of it."""
    low, high = -(-dim.lo // divisor), None if dim.hi is None else dim.hi // divisor
    if high is not None and low > high:
        raise ShapeMismatch(f"{name} {dim} must be divisible by {divisor}")
    return Dim(low, high)


class DepthToSpace(Op, since=1):
    """Moves parts of the channels to blocks of `block_size` along every spatial axis.

    Specification: DepthToSpace-1. [N, C, D1…Dk] to [N, C / b^k, D1·b…Dk·b]. `mode` is the order of the channels: (b^k,
    C / b^k) for blocks_first, (C / b^k, b^k) for depth_first.
    """

    block_size = attr.integer(rule=attr.positive)
    mode = attr.choice(*BLOCK_MODES, default="blocks_first", spec_required=True)

    widens = False

    def infer(self, data: TensorType) -> TensorType:
        if data.rank is None:
            return data.without_value()
        _check_spatial(data.shape)
        depth = divided(data.shape[1], self.block_size ** (data.rank - 2), "the channels")
        return TensorType(data.element, Shape(data.shape[0], depth, *(d * self.block_size for d in data.shape[2:])))

    def compute(self, data: Array) -> Array:
        batch, channels, *space = data.shape
        k, b = len(space), self.block_size
        depth = channels // b**k
        blocks_first = self.mode == "blocks_first"
        split = data.reshape(batch, *((*(b,) * k, depth) if blocks_first else (depth, *(b,) * k)), *space)
        channel, first_block = (1 + k, 1) if blocks_first else (1, 2)
        order = [0, channel]
        for axis in range(k):
            order += [2 + k + axis, first_block + axis]
        return split.transpose(order).reshape(batch, depth, *(n * b for n in space))


class SpaceToDepth(Op, since=1):
    """Moves blocks of `block_size` along every spatial axis to the channels; the inverse of DepthToSpace.

    Specification: SpaceToDepth-1. [N, C, D1…Dk] to [N, C·b^k, D1 / b…Dk / b].
    """

    block_size = attr.integer(rule=attr.positive)
    mode = attr.choice(*BLOCK_MODES, default="blocks_first", spec_required=True)

    widens = False

    def infer(self, data: TensorType) -> TensorType:
        if data.rank is None:
            return data.without_value()
        _check_spatial(data.shape)
        space = [divided(d, self.block_size, "a spatial dimension") for d in data.shape[2:]]
        depth = data.shape[1] * self.block_size ** len(space)
        return TensorType(data.element, Shape(data.shape[0], depth, *space))

    def compute(self, data: Array) -> Array:
        batch, channels, *space = data.shape
        k, b = len(space), self.block_size
        split = data.reshape(batch, channels, *(part for n in space for part in (n // b, b)))
        blocks, outer = [3 + 2 * axis for axis in range(k)], [2 + 2 * axis for axis in range(k)]
        inner = [*blocks, 1] if self.mode == "blocks_first" else [1, *blocks]
        return split.transpose(0, *inner, *outer).reshape(batch, channels * b**k, *(n // b for n in space))


def _check_spatial(shape: Shape) -> None:
    if len(shape) < 3:
        raise ShapeMismatch(f"data must have at least one spatial axis after batch and channels, found {shape}")


class _Batches(Op):
    """Base of SpaceToBatch and BatchToSpace: three lists with one value per axis."""

    widens = False

    @staticmethod
    def check_lists(data: Shape, **lists: TensorType) -> None:
        """Raise ShapeMismatch or TypeMismatch for lists of the wrong length, type or range."""
        require_integer(**lists)
        merge(*(tensor.element for tensor in lists.values()))
        count = ANY if data.rank is None else Dim(data.rank, data.rank)
        for name, tensor in lists.items():
            require_rank(name, tensor, 1)
            met = count.meet(length_of(tensor))
            if met is None:
                raise ShapeMismatch(f"{name} must have one value for each axis of data {data}, found {tensor.shape}")
            count = met
            least = 1 if name == "block_shape" else 0
            if tensor.ints is not None and min(tensor.ints, default=least) < least:
                raise ShapeMismatch(f"{name} must hold values of at least {least}, found {list(tensor.ints)}")
            if tensor.ints and tensor.ints[0] != least:
                raise ShapeMismatch(f"the first value of {name} must be {least}, the batch's, found {tensor.ints[0]}")
        if data.rank is not None and data.rank < 2:
            raise ShapeMismatch(f"data must be of rank 2 or higher, found {data}")


class SpaceToBatch(_Batches, since=2):
    """Moves blocks of the padded data to the batch.

    Specification: SpaceToBatch-2. [N, D1…Dk] to [N·prod(block_shape), (pads_begin + D + pads_end) / block_shape…]. The
    first value of block_shape is 1, of pads 0.
    """

    def infer(
        self, data: TensorType, block_shape: TensorType, pads_begin: TensorType, pads_end: TensorType
    ) -> TensorType:
        self.check_lists(data.shape, block_shape=block_shape, pads_begin=pads_begin, pads_end=pads_end)
        block, begin, end = block_shape.ints, pads_begin.ints, pads_end.ints
        if data.rank is None or block is None:
            return TensorType(data.element, Shape.any(data.rank))
        dims = [data.shape[0] * prod(block)]
        if begin is None or end is None:
            return TensorType(data.element, Shape(*dims, *(ANY,) * (data.rank - 1)))
        for axis in range(1, data.rank):
            padded = data.shape[axis] + (begin[axis] + end[axis])
            dims.append(divided(padded, block[axis], f"padded axis {axis}"))
        return TensorType(data.element, Shape(*dims))

    def compute(self, data: Array, block_shape: Array, pads_begin: Array, pads_end: Array) -> Array:
        padded = np.pad(data, np.stack([pads_begin, pads_end], -1))
        batch, *space = padded.shape
        block = block_shape.tolist()[1:]
        split = padded.reshape(batch, *(part for n, b in zip(space, block, strict=True) for part in (n // b, b)))
        k = len(space)
        order = [2 + 2 * axis for axis in range(k)] + [0] + [1 + 2 * axis for axis in range(k)]
        return split.transpose(order).reshape(-1 if data.size else batch * prod(block), *_quotients(space, block))


class BatchToSpace(_Batches, since=2):
    """Moves parts of the batch to blocks along the other axes and crops them; the inverse of SpaceToBatch.

    Specification: BatchToSpace-2. [N, D1…Dk] to [N / prod(block_shape), D·block_shape − crops_begin − crops_end…].
    """

    def infer(
        self, data: TensorType, block_shape: TensorType, crops_begin: TensorType, crops_end: TensorType
    ) -> TensorType:
        self.check_lists(data.shape, block_shape=block_shape, crops_begin=crops_begin, crops_end=crops_end)
        block, begin, end = block_shape.ints, crops_begin.ints, crops_end.ints
        if data.rank is None:
            return TensorType(data.element, Shape.any(data.rank))
        dims = [ANY if block is None else divided(data.shape[0], prod(block), "the batch")]
        for axis in range(1, data.rank):
            whole = data.shape[axis] * (Dim(1, None) if block is None else block[axis])
            if begin is None or end is None:
                dims.append(ANY)
                continue
            crop = begin[axis] + end[axis]
            if whole.hi is not None and crop > whole.hi:
                raise ShapeMismatch(f"crops {begin[axis]} and {end[axis]} exceed {whole}, axis {axis} with its blocks")
            dims.append(whole - crop)
        return TensorType(data.element, Shape(*dims))

    def compute(self, data: Array, block_shape: Array, crops_begin: Array, crops_end: Array) -> Array:
        block, (batch, *space) = block_shape.tolist()[1:], data.shape
        k, rest = len(space), batch // prod(block)
        order = [k]
        for axis in range(k):
            order += [k + 1 + axis, axis]
        whole = [n * b for n, b in zip(space, block, strict=True)]
        joined = data.reshape(*block, rest, *space).transpose(order).reshape(rest, *whole)
        crops = zip(joined.shape, crops_begin.tolist(), crops_end.tolist(), strict=True)
        return joined[tuple(slice(begin, size - end) for size, begin, end in crops)]


def _quotients(sizes: Sequence[int], divisors: Sequence[int]) -> list[int]:
    return [n // b for n, b in zip(sizes, divisors, strict=True)]


class ShuffleChannels(Op, since=1, missing_in=(2,)):
    """Transposes the elements along `axis`, seen as [group, C / group], to [C / group, group].

    Specification: ShuffleChannels-1. The axis may be negative.
    """

    axis = attr.integer(default=1)
    group = attr.integer(default=1, rule=attr.positive)

    widens = False

    def infer(self, data: TensorType) -> TensorType:
        if data.rank is not None:
            axis = normalize_axis(self.axis, data.rank)
            if data.shape[axis].is_static:
                divided(data.shape[axis], self.group, f"axis {axis}")
        return data.without_value()

    def compute(self, data: Array) -> Array:
        axis = self.axis % data.ndim
        before, size, after = data.shape[:axis], data.shape[axis], data.shape[axis + 1 :]
        return (
            data.reshape(*before, self.group, size // self.group, *after).swapaxes(axis, axis + 1).reshape(data.shape)
        )
