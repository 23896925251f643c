"""Parquet files with nulls among lists of fixed size, which pyarrow writes since version 25 and reads since 26.

In parquet such lists are plain ones, and the Arrow schema beside says what size they have. For an older pyarrow they
are cast to plain lists before they are written, and read as plain lists that are cast back.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from irload.batch.extras import extra

__all__ = ["ParquetTable", "open_parquet", "parquet_writer"]

WRITES, READS = 25, 26
"""The versions of pyarrow from which on nulls among lists of fixed size are written and read."""

SCHEMA = "ARROW:schema"
"""The key under which a parquet file holds its Arrow schema."""


class ParquetTable:
    """An open parquet file of columns as `schema` has them."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file = file
        self.schema = schema

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._file.metadata.num_rows

    def batches(self, rows: int) -> Iterator[Any]:
        """Record batches of up to `rows` rows, decoded one by one."""
        for batch in self._file.iter_batches(rows, use_threads=False):
            yield self._cast(batch)

    def read(self) -> Any:
        """The whole table. No threads are started, each of which would keep memory of its own."""
        return self._cast(self._file.read(use_threads=False))

    def read_row_group(self, group: int) -> Any:
        """The table of one row group."""
        return self._cast(self._file.read_row_group(group, use_threads=False))

    def _cast(self, table: Any) -> Any:
        return table if table.schema.equals(self.schema) else table.cast(self.schema)


@contextmanager
def open_parquet(source: str | Path | IO[bytes]) -> Generator[ParquetTable]:
    """Open a parquet file. Raises what pyarrow does: OSError, ValueError, ArrowException."""
    parquet = extra("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(source) as file:
        schema = file.schema_arrow
        metadata = None if _version() >= READS else _metadata_of_plain_lists(file)
        if metadata is None:
            yield ParquetTable(file, schema)
            return
        with parquet.ParquetFile(source, metadata=metadata) as plain:
            yield ParquetTable(plain, schema)


@contextmanager
def parquet_writer(stream: IO[bytes], schema: Any) -> Generator[Callable[[Any], None]]:
    """What writes tables to a parquet file, a row group each."""
    arrow, parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
    plain = schema if _version() >= WRITES else _with_plain_lists(schema)
    if plain.equals(schema):
        with parquet.ParquetWriter(stream, schema) as writer:
            yield lambda table: writer.write_table(table, row_group_size=max(len(table), 1))
        return

    def write(table: Any) -> None:
        every = arrow.array(range(len(table)), arrow.int64())
        columns = [
            # Taking all rows drops the elements that nulls have in lists of fixed size; in plain ones nulls have none.
            column if column.type.equals(field.type) else column.cast(field.type).take(every)
            for column, field in zip(table.columns, plain, strict=True)
        ]
        writer.write_table(arrow.table(columns, schema=plain), row_group_size=max(len(table), 1))

    with parquet.ParquetWriter(stream, plain, store_schema=False) as writer:
        yield write
        writer.add_key_value_metadata({SCHEMA: base64.b64encode(schema.serialize().to_pybytes()).decode()})


def _version() -> int:
    return int(extra("pyarrow", "parquet").__version__.split(".")[0])


def _metadata_of_plain_lists(file: Any) -> Any:
    """The metadata of a file without the sizes of lists; None where it has none, or where others wrote it otherwise."""
    parquet = extra("pyarrow.parquet", "parquet")
    plain = _with_plain_lists(file.schema_arrow)
    if plain.equals(file.schema_arrow):
        return None
    empty = io.BytesIO()
    parquet.ParquetWriter(empty, plain).close()
    metadata = parquet.read_metadata(empty)
    if not metadata.schema.equals(file.metadata.schema):
        return None
    metadata.append_row_groups(file.metadata)
    return metadata


def _with_plain_lists(schema: Any) -> Any:
    """The schema with lists of any size in the place of those of fixed size."""
    arrow = extra("pyarrow", "parquet")
    types = arrow.types

    def field(old: Any) -> Any:
        return old.with_type(plain(old.type))

    def plain(type_: Any) -> Any:
        if isinstance(type_, arrow.BaseExtensionType):
            storage = plain(type_.storage_type)
            return type_ if storage.equals(type_.storage_type) else storage
        if types.is_list(type_) or types.is_fixed_size_list(type_):
            return arrow.list_(field(type_.value_field))
        if types.is_large_list(type_):
            return arrow.large_list(field(type_.value_field))
        return arrow.struct([field(f) for f in type_]) if types.is_struct(type_) else type_

    return arrow.schema([field(f) for f in schema], schema.metadata)
