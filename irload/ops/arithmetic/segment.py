"""Maxima over segments of the first axis."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from irload.core import attribute as attr
from irload.core.element import i32, i64
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.elementwise import require_numeric


class SegmentMax(Op, since=16):
    """The maximum over the rows of data with equal segment id. `fill_mode` gives the value of empty segments.

    Specification: SegmentMax-16. `segment_ids` [rows]: sorted, non-negative. The output has `num_segments` rows, by
    default the last id plus one; rows with a larger id are dropped.
    """

    fill_mode = attr.choice("zero", "lowest", default="zero", spec_required=True)

    widens = False

    def infer(self, data: TensorType, segment_ids: TensorType, num_segments: TensorType | None = None) -> TensorType:
        require_numeric("data", data.element)
        for name, given in (("segment_ids", segment_ids), ("num_segments", num_segments)):
            if given is not None and not (given.element in (i32, i64) or given.element.is_dynamic):
                raise TypeMismatch(f"{name} must be i32 or i64, found {given.element}")
        if data.rank == 0:
            raise ShapeMismatch("data must not be a scalar")
        if segment_ids.rank not in (None, 1):
            raise ShapeMismatch(f"segment_ids must have one axis, found {segment_ids.shape}")
        if num_segments is not None and num_segments.rank not in (None, 0):
            raise ShapeMismatch(f"num_segments must be a scalar, found {num_segments.shape}")
        if data.rank is not None and segment_ids.rank is not None and data.shape[0].meet(segment_ids.shape[0]) is None:
            raise ShapeMismatch(f"segment_ids must have one id per row, found {segment_ids.shape} for {data.shape}")
        return TensorType(data.element, self._shape(data.shape, segment_ids.ints, num_segments))

    @staticmethod
    def _shape(data: Shape, ids: tuple[int, ...] | None, num_segments: TensorType | None) -> Shape:
        if ids is not None and list(ids) != sorted(ids):
            raise ShapeMismatch("segment_ids must be sorted")
        rows = ANY
        if num_segments is not None and num_segments.ints is not None:
            count = num_segments.ints[0]
            if count < 0:
                raise ShapeMismatch(f"num_segments must not be negative, found {count}")
            rows = Dim.of(count)
        elif num_segments is None and ids:
            rows = Dim.of(max(ids[-1] + 1, 0))
        return data if data.rank is None else data.with_dim(0, rows)

    def compute(self, data: Array, segment_ids: Array, num_segments: Array | None = None) -> Array:
        if segment_ids.size and (segment_ids[0] < 0 or np.any(np.diff(segment_ids) < 0)):
            raise ExecutionError("segment_ids must be sorted and not negative")
        implied = segment_ids[-1] + 1 if segment_ids.size else 0
        count = max(int(implied if num_segments is None else num_segments), 0)
        empty = lowest(data) if self.fill_mode == "lowest" else data.dtype.type(0)
        result = np.full((count, *data.shape[1:]), empty, data.dtype)
        present, first = np.unique(segment_ids, return_index=True)
        if present.size:
            maxima = np.maximum.reduceat(data, first, 0)
            result[present[present < count]] = maxima[present < count]
        return result


def lowest(data: Array) -> Array:
    """The lowest finite value of the array's dtype."""
    return np.asarray(np.iinfo(data.dtype).min if data.dtype.kind in "iu" else ml_dtypes.finfo(data.dtype).min)
