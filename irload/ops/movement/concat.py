"""Concat, Split and VariadicSplit: tensors joined and split along an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.context import InferContext
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import ANY, Dim, Shape, normalize_axis
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import ShapeMismatch
from irload.ops.ports import known_axis, require_integer, require_rank


class Concat(Op, since=1):
    """Joins tensors along `axis`. All other dims must be equal.

    Specification: Concat-1. The axis may be negative.
    """

    axis = attr.integer(default=0, spec_required=True)

    widens = False

    def infer(self, *inputs: TensorType) -> TensorType:
        if not inputs:
            raise ShapeMismatch("takes at least 1 input, found 0")
        element = merge(*(t.element for t in inputs))
        rank = next((t.rank for t in inputs if t.rank is not None), None)
        if rank is None:
            return TensorType(element, Shape.unranked())
        axis = normalize_axis(self.axis, rank)
        joined, length = Shape.any(rank), Dim(0, 0)
        for k, tensor in enumerate(inputs):
            if tensor.rank is None:
                length = length + ANY
                continue
            if tensor.rank != rank:
                raise ShapeMismatch(
                    f"inputs must be of one rank, found {inputs[0].shape} and {tensor.shape} (input {k})"
                )
            met = joined.meet(tensor.shape.with_dim(axis, ANY))
            if met is None:
                raise ShapeMismatch(
                    f"inputs must agree in all dims but {axis}, found {joined} and {tensor.shape} (input {k})"
                )
            joined, length = met, length + tensor.shape[axis]
        return TensorType(element, joined.with_dim(axis, length))

    def compute(self, *inputs: Array) -> Array:
        return np.concatenate(inputs, self.axis)

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, inputs, range(len(inputs)))


class Split(Op, since=1):
    """Splits `data` along `axis` into `num_splits` equal parts.

    Specification: Split-1. The dim must be divisible by num_splits.
    """

    num_splits = attr.integer(rule=attr.positive)

    widens = False

    def infer(self, data: TensorType, axis: TensorType, *, context: InferContext) -> tuple[TensorType, ...]:
        context.limits.require("ports", self.num_splits, "num_splits is too large")
        require_rank("axis", axis, 0)
        along = known_axis(axis, data.rank)
        shape = Shape.any(data.rank)
        if along is not None and data.rank is not None:
            shape = data.shape.with_dim(along, self._part(data.shape[along], along))
        return (TensorType(data.element, shape),) * self.num_splits

    def _part(self, dim: Dim, axis: int) -> Dim:
        if dim.is_static and dim.size % self.num_splits:
            raise ShapeMismatch(f"dimension {dim} of axis {axis} cannot be split into {self.num_splits} equal parts")
        if not dim.is_static and dim.hi is not None and dim.hi < self.num_splits:
            raise ShapeMismatch(f"dimension {dim} of axis {axis} is shorter than num_splits {self.num_splits}")
        return dim // self.num_splits

    def compute(self, data: Array, axis: Array) -> tuple[Array, ...]:
        return tuple(np.split(data, self.num_splits, normalize_axis(int(axis.reshape(())), data.ndim)))

    def bounds(self, data: TensorType, axis: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, (data, axis))


class VariadicSplit(Op, since=1):
    """Splits `data` along `axis` into parts of the given lengths; one may be −1, for the rest.

    Specification: VariadicSplit-1. The lengths must add up to the dim.
    """

    widens = False

    def infer(
        self, data: TensorType, axis: TensorType, split_lengths: TensorType, *, context: InferContext
    ) -> tuple[TensorType, ...]:
        require_integer(split_lengths=split_lengths)
        require_rank("split_lengths", split_lengths, 1)
        along, lengths = known_axis(axis, data.rank), split_lengths.ints
        if split_lengths.rank is None or not split_lengths.shape.is_static:
            return ()
        count = split_lengths.shape[0].size
        if not count:
            raise ShapeMismatch("split_lengths must not be empty")
        context.limits.require("ports", count, "split_lengths has too many values")
        if along is None or data.rank is None:
            return (TensorType(data.element, Shape.any(data.rank)),) * count
        if lengths is None:
            return (TensorType(data.element, data.shape.with_dim(along, ANY)),) * count
        parts = resolve_lengths(lengths, data.shape[along], along)
        return tuple(TensorType(data.element, data.shape.with_dim(along, part)) for part in parts)

    def compute(self, data: Array, axis: Array, split_lengths: Array) -> tuple[Array, ...]:
        along = normalize_axis(int(axis.reshape(())), data.ndim)
        size = data.shape[along]
        lengths = [part.size for part in resolve_lengths(split_lengths.tolist(), Dim(size, size), along)]
        return tuple(np.split(data, np.cumsum(lengths[:-1]), along)) if lengths else ()

    def bounds(self, data: TensorType, axis: TensorType, split_lengths: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, (data, axis, split_lengths))


def resolve_lengths(lengths: Sequence[int], dim: Dim, axis: int) -> list[Dim]:
    """The lengths with −1 resolved. Raises ShapeMismatch if they do not add up to the dim."""
    if any(n < -1 for n in lengths) or list(lengths).count(-1) > 1:
        raise ShapeMismatch(f"split_lengths must hold sizes and at most one -1, found {list(lengths)}")
    known = sum(n for n in lengths if n != -1)
    exact = -1 not in lengths
    if dim.is_static and (known != dim.size if exact else known > dim.size):
        raise ShapeMismatch(f"split_lengths {list(lengths)} do not add up to dimension {dim} of axis {axis}")
    rest = Dim(dim.size - known, dim.size - known) if dim.is_static and not exact else ANY
    return [rest if n == -1 else Dim(n, n) for n in lengths]
