"""Datasets for Ray, each row with its name and number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from irload.batch.extras import extra
from irload.batch.listing import Listing
from irload.batch.names import shown
from irload.batch.parquet import open_parquet
from irload.batch.tables import Tables
from irload.errors import InputInvalid

NAME = "irload.name"
NUMBER = "irload.number"


def require_readable(source: Listing | Tables) -> None:
    """Raise InputInvalid for tables or files that Ray cannot read."""
    if isinstance(source, Tables):
        if len({*source.schema.names}) != len(source.schema.names):
            raise InputInvalid("Ray does not support two columns with the same name")
        return
    for item in source:
        path = os.path.abspath(item.name)
        if not os.path.isfile(path) or shown(path) != path:
            raise InputInvalid(f"Ray reads regular files whose names are UTF-8; {shown(path)} is not one")


def rows_or_files(ray: Any, source: Listing | Tables) -> Any:
    """A dataset of table rows, or of files as bytes; the columns NAME and NUMBER identify the item."""
    if isinstance(source, Tables):
        return ray.data.read_datasource(_numbered_rows(ray, source))
    given = {os.path.abspath(item.name): (item.name, item.number) for item in source}
    return ray.data.read_binary_files(list(given), include_paths=True).map_batches(
        partial(_number_files, given), batch_format="pyarrow"
    )


def _number_files(given: dict[str, tuple[str, int]], block: Any) -> Any:
    arrow = extra("pyarrow", "parquet")
    named = [given[os.path.abspath(path)] for path in block.column("path").to_pylist()]
    columns = {"bytes": block.column("bytes"), NAME: [n for n, _ in named], NUMBER: [k for _, k in named]}
    return arrow.table(columns)


def _numbered_rows(ray: Any, tables: Tables) -> Any:
    """A Ray Datasource with one task per row group. `read_parquet` does not report the positions of rows."""
    parquet = extra("pyarrow.parquet", "parquet")
    groups: list[tuple[str, int, int, int, int, int]] = []
    number = 0
    for path, _ in tables.files:
        metadata = parquet.read_metadata(path)
        row = 0
        for k in range(metadata.num_row_groups):
            group = metadata.row_group(k)
            groups.append((path, k, row, number, group.num_rows, group.total_byte_size))
            row, number = row + group.num_rows, number + group.num_rows

    class NumberedRows(ray.data.Datasource):
        """Rows of parquet files with their names and numbers."""

        def estimate_inmemory_data_size(self) -> int:
            return sum(size for *_, size in groups)

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            return [
                ray.data.ReadTask(
                    _read(os.path.abspath(path), path, k, row, number),
                    ray.data.block.BlockMetadata(num_rows=rows, size_bytes=size, input_files=[path], exec_stats=None),
                )
                for path, k, row, number, rows, size in groups
            ]

    return NumberedRows()


def _read(file: str, path: str, group: int, row: int, number: int) -> Callable[[], Iterator[Any]]:
    def read() -> Iterator[Any]:
        arrow = extra("pyarrow", "parquet")
        with open_parquet(file) as opened:
            table = opened.read_row_group(group)
        table = table.append_column(NAME, arrow.array([f"{path}#{row + k}" for k in range(len(table))]))
        yield table.append_column(NUMBER, arrow.array(range(number, number + len(table)), arrow.int64()))

    return read
