"""The rows of parquet files as items: cells of any list or tensor type become arrays."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from irload.batch.extras import extra
from irload.batch.items import Item
from irload.core.tensor import Array
from irload.errors import InputInvalid, ReadError, Where
from irload.graph import Port

ROWS = 1024
"""Rows that are decoded at a time."""


class Tables:
    """The rows of parquet files as items, in the order of the files."""

    def __init__(self, paths: Iterable[str], inputs: Sequence[Port]) -> None:
        self.paths = list(paths)
        self._arrow, self._parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
        self.total = 0
        self.schema: Any = None
        for path in self.paths:
            with self._opened(path) as file:
                schema = file.schema_arrow
                self.total += file.metadata.num_rows
            if self.schema is None:
                self.schema = schema
            elif not schema.equals(self.schema):
                raise InputInvalid(f"the columns of {path} are not those of {self.paths[0]}")
        self.columns = input_columns(self.schema.names, inputs)
        self.carried = [self.schema.field(n) for n in self.schema.names if n not in self.columns]
        fields = {f.name for f in self.carried}
        if "input" in fields:
            raise InputInvalid("column 'input' would be that of the results' own; rename it")

    def __iter__(self) -> Iterator[Item]:
        number = 0
        for path in self.paths:
            row = 0
            for batch in self._batches(path):
                names = [f"{path}#{row + k}" for k in range(batch.num_rows)]
                yield from row_items(batch, names, number, self.columns, [f.name for f in self.carried])
                number += batch.num_rows
                row += batch.num_rows

    def _batches(self, path: str) -> Iterator[Any]:
        with self._opened(path) as file:
            yield from file.iter_batches(ROWS)

    @contextmanager
    def _opened(self, path: str) -> Generator[Any, None, None]:
        try:
            with self._parquet.ParquetFile(path) as file:
                yield file
        except (OSError, self._arrow.ArrowException) as error:
            raise ReadError(f"cannot be read as parquet: {error}", Where(path)) from None


def row_items(
    block: Any, names: Sequence[str], number: int, columns: Sequence[str], carried: Sequence[str]
) -> Iterator[Item]:
    """The rows of a record batch or table as items, numbered from `number`."""
    cells = {name: list(cells_of(block.column(name))) for name in columns}
    others = block.select(list(carried)).to_pylist() if carried else [{}] * block.num_rows
    for k, name in enumerate(names):
        values = {column: cells[column][k] for column in columns}
        null = next((column for column, value in values.items() if value is None), None)
        fault = "" if null is None else f"column '{null}' is null"
        key = name.replace("#", "/row_")
        yield Item(number + k, name, key, row=values, carried=others[k], fault=fault)


def input_columns(names: Sequence[str], inputs: Sequence[Port]) -> list[str]:
    """The columns that feed the inputs. Raises InputInvalid where one has none."""
    found: list[str] = []
    for port in inputs:
        name = next((n for n in (*sorted(port.names), port.node.name) if n in names), None)
        if name is None and len(inputs) == 1 and len(names) == 1:
            name = names[0]
        if name is None:
            raise InputInvalid(f"no column for input '{port.any_name}'; there are {', '.join(map(repr, names))}")
        found.append(name)
    return found


def cells_of(column: Any) -> Iterator[Array | None]:
    """Each cell of a column as an array, None where it is null."""
    arrow = extra("pyarrow", "parquet")
    if isinstance(column, arrow.ChunkedArray):
        for chunk in column.chunks:
            yield from cells_of(chunk)
        return
    if isinstance(column.type, arrow.FixedShapeTensorType) and not column.null_count:
        yield from column.to_numpy_ndarray()
        return
    column = getattr(column, "storage", column)
    if arrow.types.is_fixed_size_list(column.type) and not column.null_count:
        flat = column.flatten()
        if arrow.types.is_primitive(flat.type) and not flat.null_count:
            yield from flat.to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size)
            return
    if (arrow.types.is_list(column.type) or arrow.types.is_large_list(column.type)) and not column.null_count:
        flat, ends = column.flatten(), column.offsets.to_numpy()
        if arrow.types.is_primitive(flat.type) and not flat.null_count:
            yield from np.split(flat.to_numpy(zero_copy_only=False), ends[1:-1] - ends[0])
            return
    if arrow.types.is_primitive(column.type) and not column.null_count:
        yield from (np.asarray(v) for v in column.to_numpy(zero_copy_only=False))
        return
    leaf = _leaf(column.type)
    for cell in column:
        yield _cell(cell, leaf)


def _leaf(type_: Any) -> Any:
    """The dtype of the numbers in nested lists; None where there are none."""
    while hasattr(type_, "value_type"):
        type_ = type_.value_type
    return _NUMBERS.get(str(type_))  # Arrow's own conversion needs pandas in some versions


_NUMBERS = {name: np.dtype(name) for name in ("bool", *(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)))}
_NUMBERS |= {"halffloat": np.dtype("f2"), "float": np.dtype("f4"), "double": np.dtype("f8")}
"""NumPy's dtypes of Arrow's numbers, by their names there."""


def _cell(cell: Any, dtype: Any) -> Array | None:
    value = cell.as_py()
    if value is None:
        return None
    if isinstance(value, dict) and set(value) == {"shape", "data"}:  # as `TableFormat` writes what varies in shape
        leaf = _leaf(cell.type.field("data").type)
        return np.array(value["data"], leaf).reshape(value["shape"])
    try:
        return np.array(value, dtype)
    except (ValueError, TypeError):
        return np.array(0, "M8[D]")  # no numbers: refused by its dtype
