"""ScatterNDUpdate: slices of a tensor replaced at coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.element import INDEX, merge
from irload.core.shape import Shape
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import ShapeMismatch
from irload.ops.movement.scatter import Replacing, normalize_indices, reduce_at
from irload.ops.ports import require_element


def coordinates(indices: Array, shape: Sequence[int]) -> tuple[Array, ...]:
    """The last axis of `indices` as one index array per axis of `shape`. Raises ExecutionError if out of range."""
    return tuple(normalize_indices(indices[..., k], shape[k]) for k in range(indices.shape[-1]))


class ScatterNDUpdate(Replacing, since=4):
    """A copy of `data` with the slice at each row of `indices` replaced by the slice of `updates`.

    Specification: ScatterNDUpdate-3. A row (the last axis) has the first coordinates of a slice, so updates has the
    shape indices.shape[:-1] + data.shape[indices.shape[-1]:]. Of repeated rows the last one takes effect.
    """

    widens = False

    @property
    def reduces(self) -> str:
        """The reduction of later versions."""
        return self.attributes.get("reduction", "none")

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        element = merge(data.element, updates.element)
        require_element("indices", indices, *INDEX)
        for name, tensor in (("data", data), ("indices", indices)):
            if tensor.rank == 0:
                raise ShapeMismatch(f"{name} must have at least one axis, found a scalar")
        if data.rank is not None and indices.rank is not None and indices.shape[-1].is_static:
            depth = indices.shape[-1].size
            if depth > data.rank:
                raise ShapeMismatch(f"the last dim of indices {indices.shape} exceeds the rank of data {data.shape}")
            expected = Shape(*indices.shape[:-1], *data.shape[depth:])
            one_value = not len(expected) and updates.shape.size.contains(1)
            if expected.meet(updates.shape) is None and not one_value:
                raise ShapeMismatch(f"updates must be of shape {expected}, found {updates.shape}")
        return TensorType(element, data.shape)

    @property
    def replaces(self) -> bool:
        return self.reduces == "none"

    def replace(self, result: Array, indices: Array, updates: Array) -> None:
        shape = indices.shape[:-1] + result.shape[indices.shape[-1] :]
        reduce_at(result, coordinates(indices, result.shape), updates.reshape(shape), self.reduces)

    def bounds(self, data: TensorType, indices: TensorType, updates: TensorType) -> Sequence[Bounds | None] | None:
        return moved(self, (data, indices, updates), (0, 2)) if self.reduces == "none" else None


class ScatterNDUpdate15(ScatterNDUpdate, type="ScatterNDUpdate", since=15):
    """ScatterNDUpdate with a reduction over the previous value and all updates of a slice.

    Specification: ScatterNDUpdate-15.
    """

    reduction = attr.choice("none", "sum", "sub", "prod", "min", "max", default="none")

    widens = True
