"""Gather: slices of a tensor selected by index along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axis
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import ShapeMismatch
from irload.ops.ports import all_within, as_i64, known_axis, require_integer


class Gather(Op, since=1):
    """Slices of `data` along `axis` at `indices`: data.shape[:axis] + indices.shape + data.shape[axis + 1:].

    Specification: Gather-1. The specification requires non-negative indices; like the reference, irload counts negative
    ones from the end, and indices out of range give zeros.
    """

    widens = False

    @property
    def batches(self) -> int:
        """`batch_dims` of later versions."""
        return self.attributes.get("batch_dims", 0)

    def infer(self, data: TensorType, indices: TensorType, axis: TensorType) -> TensorType:
        require_integer(indices=indices)
        along = known_axis(axis, data.rank)
        batches = self.batches
        if batches < 0 and indices.rank is not None:
            batches += indices.rank
            if batches < 0:
                raise ShapeMismatch(f"batch_dims {self.batches} is out of range for indices of shape {indices.shape}")
        if along is not None and along >= 0 and batches > along:
            raise ShapeMismatch(f"batch_dims {batches} must not exceed axis {along}")
        if indices.rank is not None and batches > indices.rank:
            raise ShapeMismatch(f"batch_dims {batches} must not exceed the rank of indices {indices.shape}")
        if data.rank is None or indices.rank is None:
            return TensorType(data.element, Shape.unranked())
        if data.rank <= batches:
            raise ShapeMismatch(f"data of shape {data.shape} has no axis to gather along after {batches} batch dims")
        shared = [self._shared(data.shape, indices.shape, k) for k in range(batches)]
        if along is None:
            return TensorType(data.element, Shape(*shared, *(ANY,) * (data.rank + indices.rank - 1 - 2 * batches)))
        before, after = data.shape[batches:along], data.shape[along + 1 :]
        return TensorType(data.element, Shape(*shared, *before, *indices.shape[batches:], *after))

    @staticmethod
    def _shared(data: Shape, indices: Shape, k: int) -> Dim:
        dim = data[k].meet(indices[k])
        if dim is None:
            raise ShapeMismatch(f"data {data} and indices {indices} must have equal batch dims, axis {k} differs")
        return dim

    def compute(self, data: Array, indices: Array, axis: Array) -> Array:
        along = normalize_axis(int(axis.reshape(())), data.ndim)
        batches = self.batches % indices.ndim if self.batches < 0 else self.batches
        size = data.shape[along]
        at = as_i64(indices)
        if not batches and at.size and all_within(at, size):
            return np.take(data, at, along)
        at = np.where(at < 0, at + size, at)
        outside = (at < 0) | (at >= size)
        shape = data.shape[:along] + indices.shape[batches:] + data.shape[along + 1 :]
        blank = np.array("" if data.dtype == object else 0, data.dtype)
        if outside.all():
            return np.full(shape, blank)
        at = np.where(outside, 0, at)
        if not batches:
            result = np.take(data, at, along)
            fill = outside.reshape(outside.shape + (1,) * (data.ndim - along - 1))
            return np.where(fill, blank, result) if outside.any() else result
        # Merge batch axes, axes before the gathered one and axes after it.
        batch = data.shape[:batches]
        flat = data.reshape(np.prod(batch, dtype=int), -1, size, np.prod(data.shape[along + 1 :], dtype=int))
        rows = at.reshape(len(flat), 1, -1, 1)
        result = np.take_along_axis(flat, rows, 2)
        result = np.where(outside.reshape(rows.shape), blank, result)
        return result.reshape(shape)

    def bounds(self, data: TensorType, indices: TensorType, axis: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, (data, indices, axis))


class Gather7(Gather, type="Gather", since=7):
    """Gather whose first `batch_dims` axes are common to data and indices (Gather-7); may be negative."""

    batch_dims = attr.integer(default=0)


class Gather8(Gather7, type="Gather", since=8):
    """Gather with negative indices, which count from the end (Gather-8)."""
