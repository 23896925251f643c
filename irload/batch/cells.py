"""Table cells as arrays, from any list, tensor or struct column type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from irload.batch.extras import extra
from irload.core.tensor import Array

DEPTH = 32
"""Maximum depth of nested lists; NumPy arrays have at most 64 axes."""

CellValue = Array | bytes | str
"""An array, the bytes of an image, or the reason why the cell is neither."""


def cells_of(column: Any) -> Iterator[CellValue]:
    """Each cell of a column: numbers and text as arrays, bytes unchanged; for any other cell its fault."""
    arrow = extra("pyarrow", "parquet")
    if isinstance(column, arrow.ChunkedArray):
        for chunk in column.chunks:
            yield from cells_of(chunk)
        return
    if isinstance(column.type, arrow.FixedShapeTensorType):
        type_ = column.type
        for cell in cells_of(column.storage):
            yield _tensor(cell, type_.shape, type_.permutation)
        return
    if isinstance(column.type, arrow.BaseExtensionType):
        column = column.storage
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    yield from _plain(column, arrow) or (_cell(column, k, arrow) for k in range(len(column)))


def _plain(column: Any, arrow: Any) -> Iterator[Array] | None:
    """All cells at once, for columns of numbers or of lists of numbers without nulls."""
    types, flat = arrow.types, column
    if column.null_count:
        return None
    if types.is_fixed_size_list(column.type) or types.is_list(column.type) or types.is_large_list(column.type):
        flat = column.flatten()
    if not _is_number(flat.type, types) or flat.null_count:
        return None
    values = flat.to_numpy(zero_copy_only=False)
    if flat is column:
        return iter([np.asarray(v) for v in values])
    if types.is_fixed_size_list(column.type):
        return iter(values.reshape(len(column), column.type.list_size))
    ends = column.offsets.to_numpy()
    return iter(np.split(values, ends[1:-1] - ends[0]) if len(column) else [])


def _is_number(type_: Any, types: Any) -> bool:
    return types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_)


def _cell(column: Any, k: int, arrow: Any) -> CellValue:
    types = arrow.types
    if not column[k].is_valid:
        return "is null"
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        return column[k].as_py()
    names = [f.name for f in column.type] if types.is_struct(column.type) else []
    try:
        if sorted(names) == ["data", "shape"]:
            return _shaped(column[k], arrow)
        if names.count("bytes") == 1 and {*names} <= {"bytes", "path"}:
            content = column[k]["bytes"]
            binary = types.is_binary(content.type) or types.is_large_binary(content.type)
            return content.as_py() if content.is_valid and binary else "has no bytes; files that it names are not read"
        values = _array(column.slice(k, 1), arrow)
        return np.asarray(values[0], values.dtype)
    except _Fault as error:
        return str(error)


class _Fault(Exception):
    """The reason why a cell cannot be converted to an array."""


def _shaped(cell: Any, arrow: Any) -> Array:
    """The array of a struct {shape, data}, the format of results whose shape varies."""
    if not cell["shape"].is_valid or not cell["data"].is_valid:
        raise _Fault("has a null in place of its shape or data")
    shape, data = (_array(cell[part].values, arrow) for part in ("shape", "data"))
    if shape.ndim != 1 or shape.dtype.kind not in "iu" or shape.size > DEPTH:
        raise _Fault("has a shape that is not a list of sizes")
    sizes = [int(n) for n in shape]
    if any(n < 0 for n in sizes) or data.ndim != 1 or int(np.prod([*sizes, 1], dtype=object)) != data.size:
        raise _Fault(f"has {data.size} numbers for the shape {sizes}")
    return data.reshape(sizes)


def _array(values: Any, arrow: Any, depth: int = 0) -> Array:
    """Values of a numeric, text or list type as an array; axis 0 counts the values."""
    types = arrow.types
    if isinstance(values.type, arrow.BaseExtensionType):
        values = values.storage
    if values.null_count:
        raise _Fault("has null elements")
    if _is_number(values.type, types):
        return values.to_numpy(zero_copy_only=False)
    if types.is_string(values.type) or types.is_large_string(values.type):
        return np.array(values.to_pylist(), object)
    if types.is_decimal(values.type):
        return np.array([float(v) for v in values.to_pylist()], np.float64)
    if not (types.is_fixed_size_list(values.type) or types.is_list(values.type) or types.is_large_list(values.type)):
        raise _Fault(f"is of type {values.type}, which holds no numbers")
    if depth >= DEPTH:
        raise _Fault(f"has lists nested more than {DEPTH} deep")
    counts = [len(v.values) for v in values]
    if len({*counts}) > 1:
        raise _Fault("has lists of different lengths in one list")
    inner = _array(values.flatten(), arrow, depth + 1)
    return inner.reshape(len(values), counts[0] if counts else 0, *inner.shape[1:])


def _tensor(cell: CellValue, shape: list[int], permutation: list[int] | None) -> CellValue:
    """A flat cell in the shape of its tensor type: `shape` is the stored shape, `permutation` the order of the axes."""
    if isinstance(cell, str | bytes):
        return cell
    array = cell.reshape(shape)
    return array if permutation is None else array.transpose(permutation)
