"""CombineSegments and Truncate: ragged tensors concatenated and shortened."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import i32, merge
from irload.core.shape import UNRANKED
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.ports import require_element
from irload.ops.text.base import Text
from irload.ops.text.ragged import offsets_of, ragged_of, require_offsets, require_ragged, require_text, text_of
from irload.ops.text.tokens import ranges


class CombineSegments(Text, opset="extension"):
    """Rows of several ragged tensors, concatenated row by row.

    Inputs: ragged tensors, then one id per tensor. A tensor of a single row is repeated for all rows; one of its begin
    and end may be a scalar. Outputs: the concatenated rows, and the id of the tensor of each element, both as ragged
    tensors.
    """

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        if len(inputs) % 3 != 1:
            raise ShapeMismatch(f"takes three inputs for each ragged tensor and the ids, found {len(inputs)}")
        shape = UNRANKED
        for k in range(0, len(inputs) - 1, 3):
            require_ragged(f"segment{k // 3}", *inputs[k : k + 3])
            if inputs[k].rank:
                met = shape.meet(inputs[k].shape)
                if met is None:
                    raise ShapeMismatch(f"segments must have equal rows, found {inputs[k].shape} as segment {k // 3}")
                shape = met
        element = merge(*(inputs[k].element for k in range(2, len(inputs) - 1, 3)))
        return (*ragged_of(shape, element), *ragged_of(shape, inputs[-1].element))

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        count = (len(inputs) - 1) // 3
        if inputs[-1].size != count:
            raise ExecutionError(f"ids must be {count}, one per segment, found {inputs[-1].size}")
        tensors = [inputs[3 * k : 3 * k + 3] for k in range(count)]
        rows = max(begins.size for begins, *_ in tensors)
        shape = next((begins.shape for begins, *_ in reversed(tensors) if begins.ndim), ())
        starts = np.empty((rows, count), np.int64)
        lengths = np.empty((rows, count), np.int64)
        base = 0
        for k, (begins, ends, data) in enumerate(tensors):
            require_offsets(begins.ravel(), ends.ravel(), data.size)
            if begins.size not in (1, rows):
                raise ExecutionError(f"segment {k} has {begins.size} rows, others {rows}")
            starts[:, k] = begins.ravel() + base
            lengths[:, k] = (ends - begins).ravel()
            base += data.size
        flat = np.concatenate([data for *_, data in tensors])[ranges(starts.ravel(), lengths.ravel())]
        ids = np.repeat(np.tile(inputs[-1].ravel(), rows), lengths.ravel())
        new_begins, new_ends = (a.reshape(shape) for a in offsets_of(lengths.sum(1)))
        return new_begins, new_ends, flat, new_begins, new_ends, ids


class Truncate(Text, opset="extension"):
    """Rows of one or two ragged tensors, shortened to a common number of elements.

    Inputs: one or two ragged tensors, the maximum, an i32 scalar, the side to shorten, "left" or "right", and the mode
    for pairs, "only_first", "only_second" or "longest_first", as bytes. Outputs: the ragged tensors with other begins
    or ends.
    """

    num_inputs = attr.integer(default=0, name="m_num_inputs")

    def infer(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        count = _tensors(inputs)
        for k in range(count):
            require_ragged(f"segment{k}", *inputs[3 * k : 3 * k + 3])
        require_text("side", inputs[3 * count + 1])
        require_text("mode", inputs[-1])
        return tuple(t for k in range(count) for t in _kept(*inputs[3 * k : 3 * k + 3]))

    def compute(self, *inputs: Array) -> tuple[Array, ...]:
        limit = int(inputs[-3].ravel()[0])
        side, mode = text_of(inputs[-2]).decode(), text_of(inputs[-1]).decode()
        if side not in ("left", "right"):
            raise ExecutionError(f"the side must be left or right, found {side:.40}")
        if mode not in ("only_first", "only_second", "longest_first"):
            raise ExecutionError(f"the mode must be only_first, only_second or longest_first, found {mode:.40}")
        tensors = [inputs[k : k + 3] for k in range(0, len(inputs) - 3, 3)]
        lengths = [(ends - begins).astype(np.int64) for begins, ends, _ in tensors]
        if len(tensors) == 1:
            kept = [np.minimum(lengths[0], limit)]
        elif tensors[0][0].size != tensors[1][0].size:
            raise ExecutionError("pairs must have equal rows")
        else:
            kept = _shortened(lengths[0], lengths[1], limit, mode)
        results: list[Array] = []
        for (begins, ends, data), length in zip(tensors, kept, strict=True):
            if side == "right":
                results += [begins, (begins + length).astype(np.int32), data]
            else:
                results += [(ends - length).astype(np.int32), ends, data]
        return tuple(results)


def _tensors(inputs: tuple[TensorType, ...]) -> int:
    """The number of ragged tensors before the maximum. Raises ShapeMismatch."""
    for count in (1, 2):
        if len(inputs) == 3 * count + 3:
            require_element("max_length", inputs[3 * count], i32)
            if inputs[3 * count].rank not in (None, 0):
                raise ShapeMismatch(f"max_length must be a scalar, found shape {inputs[3 * count].shape}")
            return count
    raise ShapeMismatch(f"takes one or two ragged tensors, max_length, side and mode, found {len(inputs)} inputs")


def _kept(begins: TensorType, ends: TensorType, data: TensorType) -> tuple[TensorType, ...]:
    return ragged_of(begins.shape, begins.element)


def _shortened(first: Array, second: Array, limit: int, mode: str) -> list[Array]:
    """The lengths of pairs whose sum does not exceed `limit`."""
    long = first + second > limit
    if mode == "only_first":
        return [np.where(long, np.minimum(first, limit), first), second]
    if mode == "only_second":
        return [first, np.where(long, np.minimum(second, limit), second)]
    half, odd = limit // 2, limit % 2
    only_first = long & (first >= half + odd) & (second <= half)
    only_second = long & (first < half + odd) & (second > half)
    both = long & ~only_first & ~only_second
    first_kept = np.where(only_first, limit - second, np.where(both, half + odd * (first >= second), first))
    second_kept = np.where(only_second, limit - first, np.where(both, half + odd * (first < second), second))
    return [first_kept, second_kept]
