"""Embedding bags: rows of a table selected by indices, and summed or averaged per bag."""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.ops.movement.scatter import reduce_at
from irload.ops.ports import all_within, as_i64, require_element, require_rank
from irload.ops.reduction.reduce import divide_truncating

TOGETHER = 1 << 16
"""Maximum number of elements added in one step, which needs an index of 64 bits per element."""


def require_indices(**ports: TensorType | None) -> None:
    """Raise TypeMismatch unless all given ports are of an index type."""
    there = {name: tensor for name, tensor in ports.items() if tensor is not None}
    for name, tensor in there.items():
        require_element(name, tensor, *INDEX)
    merge(*(tensor.element for tensor in there.values()))


def require_same(name: str, a: TensorType, other: str, b: TensorType) -> None:
    """Raise ShapeMismatch for shapes that cannot be equal."""
    if a.shape.meet(b.shape) is None:
        raise ShapeMismatch(f"{name} must be of the shape of {other}, found {a.shape} and {b.shape}")


def require_one(name: str, tensor: TensorType | None) -> None:
    """Raise ShapeMismatch unless the port is a scalar."""
    if tensor is not None:
        require_rank(name, tensor, 0)


def require_rows(indices: Array, rows: int) -> None:
    """Raise ExecutionError for an index outside the rows of the table."""
    if not all_within(as_i64(indices), rows):
        wrong = indices[(indices < 0) | (indices >= rows)]
        raise ExecutionError(f"index {wrong.ravel()[0]} is outside the {rows} rows of emb_table")


def sum_rows(table: Array, indices: Array, ends: Array, weights: Array | None) -> Array:
    """The sums of rows of a table: of the `indices` from ends[0] to ends[1], then from ends[1] to ends[2], and so on.

    `indices` and `weights` (None for ones) have one axis. Returns [len(ends) − 1, …]. Raises ExecutionError for an
    index out of range.
    """
    indices, weights = indices[ends[0] :], None if weights is None else weights[ends[0] :]
    require_rows(indices, len(table))
    count = len(ends) - 1
    result = np.zeros((count, *table.shape[1:]), table.dtype)
    bag = np.repeat(np.arange(count), np.diff(ends))
    step = max(TOGETHER // max(math.prod(table.shape[1:]), 1), 1)
    for part in (slice(start, start + step) for start in range(0, len(bag), step)):
        rows = table[indices[part]]
        if weights is not None:
            rows = rows * weights[part].reshape(-1, *(1,) * (table.ndim - 1))
        reduce_at(result, (bag[part],), rows, "sum")
    return result


class SumRows(Protocol):
    """The signature of `sum_rows`."""

    def __call__(self, table: Array, indices: Array, ends: Array, weights: Array | None) -> Array: ...


class EmbeddingBag(Op):
    """Base of all bags: rows of `emb_table`, each times its weight, summed per bag."""

    replaceable = True
    sum_rows: ClassVar[SumRows] = staticmethod(sum_rows)

    def check(self, emb_table: TensorType, indices: TensorType, per_sample_weights: TensorType | None) -> None:
        """Check the table and, against the indices, the weights."""
        require_numeric("emb_table", emb_table.element)
        if emb_table.rank == 0:
            raise ShapeMismatch("emb_table must have at least one axis, found a scalar")
        if per_sample_weights is not None:
            merge(emb_table.element, per_sample_weights.element)
            require_same("per_sample_weights", per_sample_weights, "indices", indices)

    def bags(self, emb_table: TensorType, count: Dim) -> TensorType:
        """The output: `count` bags of the table's rows."""
        shape = emb_table.shape
        return TensorType(emb_table.element, shape if shape.rank is None else shape.with_dim(0, count))

    def sums(
        self,
        emb_table: Array,
        indices: Array,
        ends: Array,
        weights: Array | None,
        default_index: Array | None = None,
    ) -> Array:
        """The sum of each bag, see `sum_rows`; empty bags get the default row, or zeros."""
        result = self.sum_rows(emb_table, indices, ends, weights)
        if default_index is not None and default_index >= 0:
            require_rows(default_index, len(emb_table))
            result[np.diff(ends) == 0] = emb_table[default_index]
        return result


class EmbeddingBagOffsetsSum(EmbeddingBag, since=3):
    """Sums of bags of rows; bag k has the indices from offsets[k] to the next offset, the last bag to the end.

    Empty bags get row `default_index`, or zeros if it is absent or −1.
    """

    def infer(
        self,
        emb_table: TensorType,
        indices: TensorType,
        offsets: TensorType,
        default_index: TensorType | None = None,
        per_sample_weights: TensorType | None = None,
    ) -> TensorType:
        require_indices(indices=indices, offsets=offsets, default_index=default_index)
        require_rank("indices", indices, 1)
        require_rank("offsets", offsets, 1)
        require_one("default_index", default_index)
        self.check(emb_table, indices, per_sample_weights)
        return self.bags(emb_table, ANY if offsets.rank is None else offsets.shape[0])

    def compute(
        self,
        emb_table: Array,
        indices: Array,
        offsets: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
    ) -> Array:
        ends = np.full(len(offsets) + 1, len(indices), np.int64)
        ends[:-1] = offsets
        if ends[0] < 0 or (ends[1:] < ends[:-1]).any():
            raise ExecutionError(
                f"offsets must increase from 0 to at most {len(indices)}, found {offsets[:8].tolist()}"
            )
        return self.reduced(self.sums(emb_table, indices, ends, per_sample_weights, default_index), ends)

    def reduced(self, sums: Array, ends: Array) -> Array:
        """The output, from the sums and ends of the bags."""
        return sums


class EmbeddingBagOffsets(EmbeddingBagOffsetsSum, since=15):
    """Sums or means of bags of rows, as EmbeddingBagOffsetsSum. Weights are allowed only for sums."""

    reduction = attr.choice("sum", "mean", default="sum")

    def check(self, emb_table: TensorType, indices: TensorType, per_sample_weights: TensorType | None) -> None:
        _no_weighted_mean(self.reduction, per_sample_weights)
        super().check(emb_table, indices, per_sample_weights)

    def reduced(self, sums: Array, ends: Array) -> Array:
        if self.reduction == "sum":
            return sums
        counts = np.maximum(np.diff(ends), 1).reshape(-1, *(1,) * (sums.ndim - 1))
        return divide_truncating(sums, counts)


class EmbeddingBagPackedSum(EmbeddingBag, since=3):
    """Sums of bags of rows; bag k has the indices in row k of `indices` [batch, indices_per_bag]."""

    def infer(
        self, emb_table: TensorType, indices: TensorType, per_sample_weights: TensorType | None = None
    ) -> TensorType:
        require_indices(indices=indices)
        require_rank("indices", indices, 2)
        self.check(emb_table, indices, per_sample_weights)
        met = indices.shape if per_sample_weights is None else indices.shape.meet(per_sample_weights.shape)
        return self.bags(emb_table, ANY if met is None or met.rank is None else met[0])

    def compute(self, emb_table: Array, indices: Array, per_sample_weights: Array | None = None) -> Array:
        weights = None if per_sample_weights is None else per_sample_weights.ravel()
        return self.sums(emb_table, indices.ravel(), np.arange(len(indices) + 1) * indices.shape[1], weights)


class EmbeddingBagPacked(EmbeddingBagPackedSum, since=15):
    """Sums or means of bags of rows, as EmbeddingBagPackedSum. Weights are allowed only for sums."""

    reduction = attr.choice("sum", "mean", default="sum")

    def check(self, emb_table: TensorType, indices: TensorType, per_sample_weights: TensorType | None) -> None:
        _no_weighted_mean(self.reduction, per_sample_weights)
        super().check(emb_table, indices, per_sample_weights)

    def compute(self, emb_table: Array, indices: Array, per_sample_weights: Array | None = None) -> Array:
        sums = super().compute(emb_table, indices, per_sample_weights)
        return sums if self.reduction == "sum" else divide_truncating(sums, np.array(max(indices.shape[1], 1)))


class EmbeddingSegmentsSum(EmbeddingBag, since=3):
    """Sums of bags of rows; index k is in bag segment_ids[k] of `num_segments`.

    Bags without an index get row `default_index`, or zeros if it is absent or −1.
    """

    def infer(
        self,
        emb_table: TensorType,
        indices: TensorType,
        segment_ids: TensorType,
        num_segments: TensorType,
        default_index: TensorType | None = None,
        per_sample_weights: TensorType | None = None,
    ) -> TensorType:
        require_indices(
            indices=indices, segment_ids=segment_ids, num_segments=num_segments, default_index=default_index
        )
        require_rank("indices", indices, 1)
        require_rank("segment_ids", segment_ids, 1)
        require_same("segment_ids", segment_ids, "indices", indices)
        require_one("num_segments", num_segments)
        require_one("default_index", default_index)
        self.check(emb_table, indices, per_sample_weights)
        known = num_segments.dims
        return self.bags(emb_table, known[0] if known else ANY)

    def compute(
        self,
        emb_table: Array,
        indices: Array,
        segment_ids: Array,
        num_segments: Array,
        default_index: Array | None = None,
        per_sample_weights: Array | None = None,
    ) -> Array:
        count = int(num_segments)
        wrong = segment_ids[(segment_ids < 0) | (segment_ids >= count)]
        if wrong.size:
            raise ExecutionError(f"segment {wrong[0]} is outside the {count} segments")
        weights = per_sample_weights
        if np.any(segment_ids[1:] < segment_ids[:-1]):
            order = np.argsort(segment_ids, kind="stable")
            indices, weights = indices[order], None if weights is None else weights[order]
        ends = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(segment_ids, minlength=count), out=ends[1:])
        return self.sums(emb_table, indices, ends, weights, default_index)


def _no_weighted_mean(reduction: str, weights: TensorType | None) -> None:
    if reduction == "mean" and weights is not None:
        raise AttributeInvalid("attribute reduction must be sum where per_sample_weights are given, found mean")
