"""Parquet files with nulls in lists of fixed size, which pyarrow writes since version 25 and reads since 26.

Parquet stores these columns as lists of variable size; the Arrow schema in the metadata holds their fixed size. For an
older pyarrow the columns are cast to variable size before they are written, and cast back after they are read.
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
"""The first versions of pyarrow that write and read nulls in lists of fixed size."""

SCHEMA = "ARROW:schema"
"""The metadata key of the Arrow schema in a parquet file."""


class ParquetTable:
    """An open parquet file with columns of the types in `schema`."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file = file
        self.schema = schema

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._file.metadata.num_rows

    def batches(self, rows: int) -> Iterator[Any]:
        """Record batches of up to `rows` rows, decoded on demand."""
        for batch in self._file.iter_batches(rows, use_threads=False):
            yield self._cast(batch)

    def read(self) -> Any:
        """The whole table. Read without threads, as each thread would keep memory in its pool."""
        return self._cast(self._file.read(use_threads=False))

    def read_row_group(self, group: int) -> Any:
        """The table of one row group."""
        return self._cast(self._file.read_row_group(group, use_threads=False))

    def _cast(self, table: Any) -> Any:
        return table if table.schema.equals(self.schema) else table.cast(self.schema)


@contextmanager
def open_parquet(source: str | Path | IO[bytes]) -> Generator[ParquetTable]:
    """Open a parquet file. Raises the exceptions of pyarrow: OSError, ValueError, ArrowException."""
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
    """Writes tables to a parquet file, one row group each."""
    arrow, parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
    plain = schema if _version() >= WRITES else _with_plain_lists(schema)
    if plain.equals(schema):
        with parquet.ParquetWriter(stream, schema) as writer:
            yield lambda table: writer.write_table(table, row_group_size=max(len(table), 1))
        return

    def write(table: Any) -> None:
        every = arrow.array(range(len(table)), arrow.int64())
        columns = [
            # `take` drops the elements below nulls in lists of fixed size; nulls in lists of variable size are empty.
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
    """The metadata of a file without the sizes of lists; None if they are missing or were written by other software."""
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
    """The schema with each list of fixed size replaced by a list of variable size."""
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
