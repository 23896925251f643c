"""GatherElements, GatherND and GatherTree: elements selected by position, slices by coordinates, beams by parents."""

from __future__ import annotations

from functools import reduce

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axis
from irload.core.tensor import Array, TensorType, length_of
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.movement.scatter import element_grid, normalize_indices
from irload.ops.ports import require_element, require_integer, require_rank


class GatherElements(Op, since=6):
    """For each position in `indices`, the element of `data` at that position with `axis` replaced by the index.

    Specification: GatherElements-6. Indices have the rank and dims of data, except along the axis; negative ones count
    from the end.
    """

    axis = attr.integer(default=0, spec_required=True)

    widens = False

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        require_element("indices", indices, *INDEX)
        for name, tensor in (("data", data), ("indices", indices)):
            if tensor.rank == 0:
                raise ShapeMismatch(f"{name} must have at least one axis, found a scalar")
        if data.rank is None:
            return TensorType(data.element, indices.shape)
        axis = normalize_axis(self.axis, data.rank)
        met = data.shape.with_dim(axis, ANY).meet(indices.shape)
        if met is None:
            raise ShapeMismatch(
                f"indices must have the dims of data {data.shape} but for axis {axis}, found {indices.shape}"
            )
        return TensorType(data.element, met)

    def compute(self, data: Array, indices: Array) -> Array:
        return data[element_grid(data, indices, self.axis % data.ndim)]


class GatherND(Op, since=8):
    """The slices of `data` at the coordinates on the last axis of `indices`.

    Specification: GatherND-8. The first `batch_dims` axes are common to both; the output has the shape
    indices.shape[:-1] + data.shape[batch_dims + indices.shape[-1]:]. Negative coordinates count from the end.
    """

    batch_dims = attr.integer(default=0, rule=attr.non_negative)

    widens = False

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        require_integer(indices=indices)
        batches = self.batch_dims
        for name, tensor in (("data", data), ("indices", indices)):
            if tensor.rank is not None and tensor.rank <= batches:
                raise ShapeMismatch(f"{name} must have more than {batches} axes (batch_dims), found {tensor.shape}")
        if data.rank is None or indices.rank is None or not indices.shape[-1].is_static:
            return TensorType(data.element, Shape.unranked())
        depth = indices.shape[-1].size
        if batches + depth > data.rank:
            raise ShapeMismatch(
                f"last dim of indices {indices.shape} exceeds the axes of data {data.shape} after {batches} batch dims"
            )
        shared = Shape(*data.shape[:batches]).meet(Shape(*indices.shape[:batches]))
        if shared is None:
            raise ShapeMismatch(f"data {data.shape} and indices {indices.shape} must agree in {batches} batch dims")
        rest = (*indices.shape[batches:-1], *data.shape[batches + depth :])
        return TensorType(data.element, Shape(*self.batch_shape(shared), *rest))

    def batch_shape(self, batch: Shape) -> tuple[Dim, ...]:
        """The batch dims of the output."""
        return batch.dims

    def compute(self, data: Array, indices: Array) -> Array:
        batches = self.batch_dims
        sizes = data.shape[batches:]
        coordinates = [normalize_indices(indices[..., k], sizes[k]) for k in range(indices.shape[-1])]
        if coordinates and not batches:
            return data[tuple(coordinates)]
        grid = np.indices(indices.shape[:-1], sparse=True)[:batches]
        # Empty coordinates select all of the data.
        result = np.broadcast_to(data[(*grid, *coordinates)], indices.shape[:-1] + sizes[len(coordinates) :])
        batch = [d.size for d in self.batch_shape(Shape(*data.shape[:batches]))]
        return result.reshape((*batch, *result.shape[batches:]))


class GatherND5(GatherND, type="GatherND", since=5):
    """GatherND that merges its batch dims into one (GatherND-5)."""

    def batch_shape(self, batch: Shape) -> tuple[Dim, ...]:
        return (reduce(Dim.__mul__, batch.dims),) if len(batch) else ()


class GatherTree(Op, since=1):
    """The full beams of a beam search, from the ids of each step and the parent beam of each step.

    Specification: GatherTree-1. Shapes are [steps, batch, beams]; a beam is traced back from its last step, and after
    its first `end_token` all tokens are end_token.
    """

    widens = False

    def infer(
        self, step_ids: TensorType, parent_idx: TensorType, max_seq_len: TensorType, end_token: TensorType
    ) -> TensorType:
        element = merge(step_ids.element, parent_idx.element, max_seq_len.element, end_token.element)
        shape = step_ids.shape.meet(parent_idx.shape)
        if shape is None or shape.rank not in (None, 3):
            raise ShapeMismatch(
                f"step_ids and parent_idx must have one shape of rank 3, found {step_ids.shape} and {parent_idx.shape}"
            )
        require_rank("max_seq_len", max_seq_len, 1)
        require_rank("end_token", end_token, 0)
        if shape.rank is None:
            return TensorType(element, shape)
        batch = shape[1].meet(length_of(max_seq_len))
        if batch is None:
            raise ShapeMismatch(
                f"max_seq_len must have one value for each of {shape[1]} batches, found {max_seq_len.shape}"
            )
        return TensorType(element, shape.with_dim(1, batch))

    def compute(self, step_ids: Array, parent_idx: Array, max_seq_len: Array, end_token: Array) -> Array:
        steps, batch, beams = step_ids.shape
        last = np.minimum(max_seq_len.astype(np.int64), steps)[:, None] - 1
        active = np.arange(steps)[:, None, None] <= last
        parents = np.where(active, parent_idx.astype(np.int64), np.arange(beams))
        wrong = (parents < 0) | (parents >= beams)
        # The beams of all batch elements are one axis, so that one index selects them.
        parents = parents.clip(0, beams - 1) + np.arange(batch)[:, None] * beams
        wrong, ids, parents = (flat.reshape(steps, batch * beams) for flat in (wrong, step_ids, parents))
        path = np.tile(np.arange(batch * beams), (steps, 1))
        for step in range(steps - 1, 0, -1):
            parents[step].take(path[step], out=path[step - 1], mode="clip")
        astray = np.flatnonzero(np.take_along_axis(wrong, path, 1)[1:].any(1))
        if astray.size:
            raise ExecutionError(f"parent_idx leads outside of the {beams} beams at step {astray[-1]}")
        result = np.where(active, np.take_along_axis(ids, path, 1).reshape(step_ids.shape), end_token)
        ended = np.logical_or.accumulate(result == end_token, axis=0)
        return np.where(ended, end_token, result)
