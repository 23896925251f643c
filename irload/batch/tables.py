"""The rows of parquet files as items."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from irload.arrays.input_files import names_of, port_named
from irload.batch.carried import Carried
from irload.batch.cells import cells_of
from irload.batch.extras import extra
from irload.batch.items import Item
from irload.batch.listing import stamp
from irload.batch.names import shown
from irload.batch.parquet import ParquetTable, open_parquet
from irload.core.tensor import Array
from irload.errors import InputInvalid, ReadError, Where
from irload.graph import Port
from irload.safety.files import open_regular

ROWS = 64
"""Rows decoded at a time; items share the copied columns of one block."""


class Tables:
    """The rows of parquet files as items, in the order of the files.

    `files` are paths with the keys of their outputs; `mapping` assigns columns to inputs by name.
    """

    def __init__(
        self,
        files: Iterable[tuple[str, str]],
        inputs: Sequence[Port],
        mapping: Mapping[str, str] | None = None,
        *,
        hashed: bool = False,
    ) -> None:
        self.files = list(files)
        self._hashed = hashed
        self._arrow, self._parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
        self.total = 0
        self.schema: Any
        for k, (path, _) in enumerate(self.files):
            with self._opened(path) as file:
                schema = file.schema
                self.total += file.rows
            if k == 0:
                self.schema = schema
            elif not schema.equals(self.schema):
                raise InputInvalid(f"the columns of {shown(path)} differ from {shown(self.files[0][0])}")
        self.columns = input_columns(self.schema.names, inputs, mapping or {})
        self.carried = [self.schema.field(k) for k in carried_places(self.schema.names, self.columns.values())]

    def __iter__(self) -> Iterator[Item]:
        number = 0
        for path, key in self.files:
            row = 0
            mark = stamp([path], hashed=self._hashed)
            for batch in self._batches(path):
                rows = range(row, row + batch.num_rows)
                names = [(f"{path}#{k}", f"{key}/row_{k}") for k in rows]
                yield from row_items(batch, names, number, self.columns, mark)
                number += batch.num_rows
                row += batch.num_rows

    def _batches(self, path: str) -> Iterator[Any]:
        with self._opened(path) as file:
            yield from file.batches(ROWS)

    @contextmanager
    def _opened(self, path: str) -> Generator[ParquetTable]:
        with open_table(path) as file:
            yield file


@contextmanager
def open_table(path: str) -> Generator[ParquetTable]:
    """A regular file as a table. Raises ReadError for any other file; never waits for a FIFO or device."""
    arrow = extra("pyarrow", "parquet")
    try:
        with os.fdopen(open_regular(path, "the table")[0], "rb") as stream, open_parquet(stream) as file:
            yield file
    except (OSError, ValueError, RecursionError, arrow.ArrowException) as error:
        raise ReadError(f"cannot be read as parquet: {str(error).splitlines()[0][:300]}", Where(shown(path))) from None


def row_items(
    block: Any, names: Sequence[tuple[str, str]], number: int, columns: Mapping[str, str], stamp: str = ""
) -> Iterator[Item]:
    """The rows of a record batch as items, numbered from `number`, each with its name and the key of its output.

    `columns` are the columns that feed inputs, by input.
    """
    indices = [block.schema.names.index(name) for name in columns.values()]
    cells = [list(cells_of(block.column(index))) for index in indices]
    others = carried_places(block.schema.names, columns.values())
    carried = block.select(others) if others else None
    for k, (name, key) in enumerate(names):
        values: dict[str, Array | bytes] = {}
        fault = ""
        for (port, column), column_cells in zip(columns.items(), cells, strict=True):
            cell = column_cells[k]
            if isinstance(cell, str):
                fault = fault or f"column '{column}' {cell}"
            else:
                values[port] = cell
        row = None if carried is None else Carried(carried, k)
        yield Item(number + k, name, key, row=values, carried=row, fault=fault, stamp=stamp)


def carried_places(names: Sequence[str], columns: Collection[str]) -> list[int]:
    """The positions of the columns that do not feed an input."""
    return [k for k, name in enumerate(names) if name not in columns]


def input_columns(names: Sequence[str], inputs: Sequence[Port], mapping: Mapping[str, str]) -> dict[str, str]:
    """The columns that feed the inputs, by input; the name "" is that of the only input.

    Raises InputInvalid if a column is missing.
    """
    if "" in mapping and len(inputs) != 1:
        example = f", for example --column {inputs[0].any_name}={mapping['']}" if inputs else ""
        raise InputInvalid(f"--column '{mapping['']}' must name an input, since the model has {len(inputs)}{example}")
    mapped = {port_named(inputs, name).index if name else 0: column for name, column in mapping.items()}
    columns: dict[str, str] = {}
    for port in inputs:
        name = mapped.get(port.index) or next((n for n in names if n in names_of(port)), None)
        if name is None and len(inputs) == 1 and len(names) == 1:
            name = names[0]
        if name is None or name not in names:
            missing = f"no column '{name}'" if name else "no column"
            raise InputInvalid(
                f"{missing} for input '{port.any_name}'; there are {', '.join(map(repr, names))} "
                f"(--column '{port.any_name}=COLUMN' names another)"
            )
        if names.count(name) > 1:
            raise InputInvalid(f"two columns are named '{name}', which feeds input '{port.any_name}'; rename one")
        columns[port.any_name] = name
    return columns
