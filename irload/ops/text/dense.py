"""Ragged tensors to dense and sparse ones, and rows from row ids."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import boolean, i32
from irload.core.scratch import require_scratch
from irload.core.shape import ANY, UNRANKED, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.ports import require_element, require_rank, require_scalar
from irload.ops.text.base import Text
from irload.ops.text.ragged import LINE, require_offsets

_LONG = 64
"""From this length on, rows are copied one by one."""


class RaggedToDense(Text, opset="extension"):
    """Rows of a ragged tensor, padded or shortened to one length.

    Inputs: begins and ends of rows, i32, data with rows along the first axis, the length, a default value, and
    optionally a boolean that replaces `pad_right`. Outputs: the dense tensor, and a mask that is true for elements of
    data. With `m_pad_max_length`, each row has `length` elements from its begin, even beyond its end.
    """

    pad_right = attr.boolean(default=True)
    pad_max_length = attr.boolean(default=False, name="m_pad_max_length")

    def infer(
        self,
        begins: TensorType,
        ends: TensorType,
        data: TensorType,
        length: TensorType,
        default: TensorType,
        pad_right: TensorType | None = None,
    ) -> tuple[TensorType, TensorType]:
        require_element("begins", begins, i32)
        require_element("ends", ends, i32)
        require_element("length", length, i32)
        require_scalar("length", length)
        require_rank("default", default, 0)
        if data.rank == 0:
            raise ShapeMismatch("data must have at least one axis, found a scalar")
        if not (default.element is data.element or default.element.is_dynamic or data.element.is_dynamic):
            raise TypeMismatch(f"default must be of type {data.element}, found {default.element}")
        if pad_right is not None:
            require_element("pad_right", pad_right, boolean)
            require_rank("pad_right", pad_right, 0)
        if begins.rank is None or data.rank is None:
            return TensorType(data.element, UNRANKED), TensorType(boolean, UNRANKED)
        known = length.ints
        target = ANY if not known else Dim.of(known[0])
        shape = Shape(*begins.shape.dims, target, *data.shape.dims[1:])
        return TensorType(data.element, shape), TensorType(boolean, shape)

    def compute(
        self,
        begins: Array,
        ends: Array,
        data: Array,
        length: Array,
        default: Array,
        pad_right: Array | None = None,
    ) -> tuple[Array, Array]:
        require_offsets(begins, ends, len(data))
        target = int(length.ravel()[0])
        if target < 0:
            raise ExecutionError(f"the length must not be negative, found {target}")
        right = self.pad_right if pad_right is None else bool(pad_right.ravel()[0])
        sizes = np.minimum(ends - begins, target).ravel()
        if self.pad_max_length:
            sizes = np.full_like(sizes, target)
        if not self.pad_max_length and target >= _LONG:
            return _by_rows(begins, sizes, data, target, default, right=right)
        column = np.arange(target)
        skipped = np.zeros_like(sizes) if right else target - sizes
        position = column - skipped[:, None]
        mask = (position >= 0) & (position < sizes[:, None])
        index = begins.ravel()[:, None] + position
        inside = mask & (index < len(data))
        dense = np.full((sizes.size, target, *data.shape[1:]), default.ravel()[0], data.dtype)
        dense[inside] = data[index[inside]]
        shape = (*begins.shape, target, *data.shape[1:])
        wide = mask.reshape(*mask.shape, *(1,) * (data.ndim - 1))
        return dense.reshape(shape), np.broadcast_to(wide, dense.shape).reshape(shape)


def _by_rows(
    begins: Array, sizes: Array, data: Array, target: int, default: Array, *, right: bool
) -> tuple[Array, Array]:
    """Rows padded one by one: faster for long rows."""
    dense = np.full((sizes.size, target, *data.shape[1:]), default.ravel()[0], data.dtype)
    mask = np.zeros(dense.shape, bool)
    for row, (begin, size) in enumerate(zip(begins.ravel().tolist(), sizes.tolist(), strict=True)):
        kept = slice(0, size) if right else slice(target - size, target)
        dense[row, kept] = data[begin : begin + size]
        mask[row, kept] = True
    shape = (*begins.shape, *dense.shape[1:])
    return dense.reshape(shape), mask.reshape(shape)


class RaggedToSparse(Text, opset="extension"):
    """The row and the column of each element of a ragged tensor.

    Inputs: begins and ends of rows, i32. Output: i32 [elements, 2].
    """

    def infer(self, begins: TensorType, ends: TensorType) -> TensorType:
        require_element("begins", begins, i32)
        require_element("ends", ends, i32)
        if begins.shape.meet(ends.shape) is None:
            raise ShapeMismatch(f"begins and ends must be of one shape, found {begins.shape} and {ends.shape}")
        return TensorType(i32, Shape(ANY, 2))

    def compute(self, begins: Array, ends: Array) -> Array:
        lengths = ends.ravel().astype(np.int64) - begins.ravel()
        if lengths.size and lengths.min() < 0:
            raise ExecutionError("begins must not exceed ends")
        require_scratch((int(lengths.sum()), 2), np.dtype(np.int64), "the rows and columns of the elements")
        rows = np.repeat(np.arange(lengths.size), lengths)
        columns = np.arange(rows.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.stack([rows, columns], -1).astype(np.int32)


class RaggedToRagged(Text, opset="extension"):
    """The begins and ends of rows, from the row of each element.

    Inputs: ascending row ids, i32, and the number of rows, i32. An element whose row id is not below the number of rows
    is left out, with all elements after it.
    """

    def infer(self, rowids: TensorType, first_dim_size: TensorType) -> tuple[TensorType, TensorType]:
        require_element("rowids", rowids, i32)
        require_element("first_dim_size", first_dim_size, i32)
        known = first_dim_size.ints
        rows = TensorType(i32, Shape(known[0]) if known else LINE)
        return rows, rows

    def compute(self, rowids: Array, first_dim_size: Array) -> tuple[Array, Array]:
        rows = int(first_dim_size.ravel()[0])
        ids = rowids.ravel()
        if ids.size and ids.min() < 0:
            raise ExecutionError(f"row ids must not be negative, found {int(ids.min())}")
        later = np.flatnonzero(ids >= rows)
        ids = ids[: later[0]] if later.size else ids
        if np.any(ids[1:] < ids[:-1]):
            raise ExecutionError("row ids must be ascending")
        ends = np.searchsorted(ids, np.arange(rows), "right").astype(np.int32)
        return np.concatenate([np.zeros(1, np.int32), ends])[:rows], ends


class RaggedTensorPack(Text, opset="extension"):
    """The data of a ragged tensor. Converters use it to mark ragged tensors."""

    def infer(self, begins: TensorType, ends: TensorType, data: TensorType) -> TensorType:
        require_element("begins", begins, i32)
        require_element("ends", ends, i32)
        return data.without_value()

    def compute(self, begins: Array, ends: Array, data: Array) -> Array:
        return data
