"""ScatterUpdate and ScatterElementsUpdate: a copy of a tensor with some slices or elements replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from irload.core import attribute as attr
from irload.core.bounds import moved
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import Shape, normalize_axis
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import ExecutionError, ShapeMismatch
from irload.ops.ports import all_within, as_i64, known_axis, require_integer

REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add,
    "sub": np.subtract,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": np.add,
}


def normalize_indices(indices: Array, size: int) -> Array:
    """The indices counted from the front. Raises ExecutionError for an index out of range."""
    at = as_i64(indices)
    if all_within(at, size):
        return at
    if at.size and (at.min() < -size or at.max() >= size):
        wrong = at.min() if at.min() < -size else at.max()
        raise ExecutionError(f"index {wrong} is out of range for an axis of {size}")
    return np.where(at < 0, at + size, at)


def flat_index(shape: Sequence[int], where: tuple[Array, ...]) -> Array:
    """The elements selected by index arrays of the first axes, as indices of the flattened array."""
    at = np.arange(math.prod(shape[len(where) :]))
    for k, index in enumerate(where):
        at = at + index[..., None] * math.prod(shape[k + 1 :])
    return at.ravel()


def reduce_at(result: Array, where: tuple[Array, ...], updates: Array, reduction: str) -> None:
    """Write `updates` to `result` (contiguous) in place, reduced with the previous values and with each other."""
    if reduction == "none":
        result[where] = updates
    else:  # NumPy is several times faster for a single index array
        REDUCTIONS[reduction].at(result.reshape(-1), flat_index(result.shape, where), updates.ravel())


class Replacing(Op):
    """Base of operations that return a copy of their first input with some elements replaced."""

    @property
    def replaces(self) -> bool:
        """False if `replace` does not compute the result, for example if updates are reduced."""
        return True

    def replace(self, result: Array, *inputs: Array) -> None:
        """Replace elements of `result`, a copy of the first input, in place. `inputs`: the other inputs."""
        raise NotImplementedError

    def compute(self, data: Array, *inputs: Array) -> Array:
        result = data.copy()
        self.replace(result, *inputs)
        return result


class ScatterUpdate(Replacing, since=3):
    """A copy of `data` with the slices at `indices` along `axis` replaced by `updates`.

    Specification: ScatterUpdate-3. The shape of updates is the shape of data with the axis replaced by the shape of
    indices. Of repeated indices the last one takes effect; negative ones count from the end.
    """

    widens = False

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType) -> TensorType:
        element = merge(data.element, updates.element)
        require_integer(indices=indices)
        along = known_axis(axis, data.rank)
        if data.rank is not None and indices.rank is not None and updates.rank is not None:
            if updates.rank != data.rank + indices.rank - 1:
                raise ShapeMismatch(
                    f"updates must be of rank {data.rank + indices.rank - 1} for data {data.shape} and indices "
                    f"{indices.shape}, found shape {updates.shape}"
                )
            if along is not None:
                expected = Shape(*data.shape[:along], *indices.shape, *data.shape[along + 1 :])
                if expected.meet(updates.shape) is None:
                    raise ShapeMismatch(f"updates must be of shape {expected}, found {updates.shape}")
        return TensorType(element, data.shape)

    def replace(self, result: Array, indices: Array, updates: Array, axis: Array) -> None:
        along = normalize_axis(int(axis.reshape(())), result.ndim)
        result[(slice(None),) * along + (normalize_indices(indices, result.shape[along]),)] = updates

    def bounds(
        self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType
    ) -> Sequence[Bounds | None] | None:
        return moved(self, (data, indices, updates, axis), (0, 2))


class ScatterElementsUpdate(Replacing, since=3):
    """A copy of `data` with element `indices[i]` along `axis` replaced by `updates[i]`, for each position i.

    Specification: ScatterElementsUpdate-3. Indices and updates have one shape, of the rank of data. Of repeated indices
    the last one takes effect; negative ones count from the end.
    """

    widens = False

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType) -> TensorType:
        element = merge(data.element, updates.element)
        require_integer(indices=indices)
        known_axis(axis, data.rank)
        if indices.shape.meet(updates.shape) is None:
            raise ShapeMismatch(f"indices and updates must be of one shape, found {indices.shape} and {updates.shape}")
        if None not in (data.rank, indices.rank) and data.rank != indices.rank:
            raise ShapeMismatch(f"indices must be of the rank of data {data.shape}, found shape {indices.shape}")
        return TensorType(element, data.shape)

    def replace(self, result: Array, indices: Array, updates: Array, axis: Array) -> None:
        along = normalize_axis(int(axis.reshape(())), result.ndim)
        slices = index_of_slices(indices, along)
        if slices is None:
            result[element_grid(result, indices, along)] = updates
        else:
            where = [slice(n) for n in indices.shape]
            result[(*where[:along], normalize_indices(slices, result.shape[along]), *where[along + 1 :])] = updates

    def bounds(
        self, data: TensorType, indices: TensorType, updates: TensorType, axis: TensorType
    ) -> Sequence[Bounds | None] | None:
        return moved(self, (data, indices, updates, axis), (0, 2))


def index_of_slices(indices: Array, axis: int) -> Array | None:
    """The index of each slice along an axis, None unless all elements of a slice have the same index.

    PyTorch's exporters expand the indices of slices in this way.
    """
    if not indices.size:
        return None
    others = [k for k in range(indices.ndim) if k != axis and indices.shape[k] > 1]
    first = indices[tuple(slice(None) if k == axis else slice(1) for k in range(indices.ndim))]
    is_uniform = not any(indices.strides[k] for k in others) or (indices == first).all()
    return first.reshape(-1) if is_uniform else None


def element_grid(data: Array, indices: Array, along: int) -> tuple[Array, ...]:
    """One index array per axis: `indices` for the axis `along`, and the element's position for all others.

    If `indices` selects whole slices, there are no arrays for the axes after `along`.
    """
    slices = index_of_slices(indices, along) if indices.shape[along + 1 :] == data.shape[along + 1 :] else None
    selected = indices if slices is None else slices.reshape(*(1,) * along, -1)
    grid: list[Any] = list(np.indices(indices.shape[: selected.ndim], sparse=True))
    grid[along] = normalize_indices(selected, data.shape[along])
    return tuple(grid)


def reduce_along(result: Array, indices: Array, updates: Array, axis: int, reduction: str) -> None:
    """Reduce elements of `result` (contiguous) in place with updates, at `indices` along an axis.

    Raises ExecutionError for an index out of range.
    """
    reduce_at(result, element_grid(result, indices, axis), updates, reduction)


class ReduceAlong(Protocol):
    """The signature of `reduce_along`."""

    def __call__(self, result: Array, indices: Array, updates: Array, axis: int, reduction: str) -> None: ...


class ScatterElementsUpdate12(ScatterElementsUpdate, type="ScatterElementsUpdate", since=12):
    """ScatterElementsUpdate with a reduction (ScatterElementsUpdate-12).

    With `reduction` sum, prod, min, max or mean, all updates of one element are reduced with each other and, with
    `use_init_val`, with its previous value. The mean of integers is floored.
    """

    reduction = attr.choice("none", "sum", "prod", "min", "max", "mean", default="none")
    use_init_val = attr.boolean(default=True)

    widens = True
    replaceable = True
    reduce_along: ClassVar[ReduceAlong] = staticmethod(reduce_along)

    @property
    def replaces(self) -> bool:
        return self.reduction == "none"

    def compute(self, data: Array, indices: Array, updates: Array, axis: Array) -> Array:
        if self.reduction == "none":
            return super().compute(data, indices, updates, axis)
        along = normalize_axis(int(axis.reshape(())), data.ndim)
        result = data.copy()
        if not self.use_init_val:
            result[element_grid(data, indices, along)] = neutral(self.reduction, data.dtype)
        self.reduce_along(result, indices, updates, along, self.reduction)
        if self.reduction == "mean":
            at = flat_index(data.shape, element_grid(data, indices, along))
            added = np.bincount(at, minlength=data.size).reshape(data.shape)
            count = added + int(self.use_init_val)
            divide: Callable[[Array, Array], Array] = np.divide if data.dtype.kind == "f" else np.floor_divide
            result = divide(result, np.maximum(count, 1)).astype(data.dtype)
        return result


def neutral(reduction: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a reduction."""
    if reduction in ("sum", "mean", "sub"):
        return 0
    if reduction == "prod":
        return 1
    if dtype.kind == "b":
        return reduction == "min"
    if dtype.kind == "f":
        return np.inf if reduction == "min" else -np.inf
    return np.iinfo(dtype).max if reduction == "min" else np.iinfo(dtype).min
