"""Copies table columns of any parquet type into the results, without conversion to Python objects."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irload.batch.extras import extra


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """One row of a block of columns. Rows pickled together share the block."""

    block: Any
    row: int

    def values(self) -> list[Any]:
        """The values as JSON, in column order."""
        return [json_value(column[self.row]) for column in self.block.columns]


def carried_columns(fields: Sequence[Any], rows: Sequence[Carried | None]) -> list[Any]:
    """The columns of these rows; null for a row without columns."""
    arrow = extra("pyarrow", "parquet")
    chunks: list[list[Any]] = [[] for _ in fields]
    begin = 0
    while begin < len(rows):
        end, first = begin, rows[begin]
        block = None if first is None else first.block
        indices: list[int] = []
        while end < len(rows):
            row = rows[end]
            if (None if row is None else row.block) is not block:
                break
            indices += [] if row is None else [row.row]
            end += 1
        for k, field in enumerate(fields):
            column = arrow.nulls(end - begin, field.type) if block is None else _take(arrow, block.column(k), indices)
            chunks[k].append(column)
        begin = end
    return [arrow.chunked_array(parts, field.type) for parts, field in zip(chunks, fields, strict=True)]


def _take(arrow: Any, column: Any, indices: Sequence[int]) -> Any:
    if isinstance(column, arrow.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column.type, arrow.BaseExtensionType):
        return column.type.wrap_array(_take(arrow, column.storage, indices))
    first, count = indices[0], len(indices)
    if list(indices) == list(range(first, first + count)):
        return column.slice(first, count)
    return arrow.concat_arrays([column.slice(k, 1) for k in indices])


def json_value(scalar: Any) -> Any:
    """A column value as JSON: NaN and infinities are null, bytes base64, times and decimals text."""
    types = extra("pyarrow", "parquet").types
    if not scalar.is_valid:
        return None
    type_ = scalar.type
    if hasattr(scalar, "type") and hasattr(type_, "storage_type"):
        return json_value(scalar.value)
    if types.is_dictionary(type_):
        return json_value(scalar.dictionary[scalar.index.as_py()])
    if types.is_struct(type_):
        return {type_.field(k).name: json_value(scalar[k]) for k in range(type_.num_fields)}
    if types.is_map(type_):
        entries = scalar.values
        return [[json_value(entries.field(0)[k]), json_value(entries.field(1)[k])] for k in range(len(entries))]
    if types.is_nested(type_):
        return [json_value(item) for item in scalar.values]
    if types.is_boolean(type_) or types.is_integer(type_):
        return scalar.as_py()
    if types.is_floating(type_):
        number = float(scalar.as_py())
        return number if math.isfinite(number) else None
    if types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_):
        return base64.b64encode(scalar.as_py()).decode("ascii")
    return _text(scalar)


def _text(scalar: Any) -> str:
    """The value as text formatted by Arrow, which has no limits on years or digits and needs no time zone database."""
    arrow = extra("pyarrow", "parquet")
    type_ = scalar.type
    if arrow.types.is_timestamp(type_) and type_.tz is not None:
        return _text(scalar.cast(arrow.int64()).cast(arrow.timestamp(type_.unit))) + "Z"
    try:
        return scalar.cast(arrow.string()).as_py()
    except (arrow.ArrowException, UnicodeDecodeError):
        pass
    try:
        return str(scalar.cast(arrow.int64()).as_py())
    except arrow.ArrowException:
        return str(scalar)
