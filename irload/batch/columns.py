"""Converts results to rows of a table, and defines the names and types of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np

from irload.arrays.npy import storable
from irload.batch.carried import Carried, carried_columns
from irload.batch.extras import extra
from irload.batch.names import shown
from irload.batch.parquet import parquet_writer
from irload.core.tensor import Array
from irload.graph import Port

ResultRow = tuple[str, Carried | None, tuple[Array, ...] | None]
"""The name of a sample, the columns copied from its input, its outputs (None if it failed)."""


def column_names(outputs: Sequence[str], carried: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of the columns: `input`, then the outputs, then the columns copied from the input table.

    A copied column whose name is used gets a number: `scores` becomes `scores_1`.
    """
    used = {"input"}
    names: list[str] = []
    for name in (*outputs, *carried):
        free, k = name, 1
        while free in used:
            free, k = f"{name}_{k}", k + 1
        used.add(free)
        names.append(free)
    return names[: len(outputs)], names[len(outputs) :]


class TableFormat:
    """The columns of a result table: `input`, the columns copied from the input, one per output of the model.

    Outputs of static shape are lists of fixed size (tensors of fixed shape from two axes on); others are a struct of
    `shape` and `data`.
    """

    def __init__(self, outputs: Sequence[Port], names: Sequence[str], carried: Sequence[Any], *, stacked: bool) -> None:
        self.arrow = extra("pyarrow", "parquet")
        self.names, renamed = column_names(names, [f.name for f in carried])
        self.carried = [f.with_name(name) for f, name in zip(carried, renamed, strict=True)]
        fields = [self.arrow.field("input", self.arrow.string()), *self.carried]
        fields += [self.arrow.field(n, self._type(p, stacked)) for n, p in zip(self.names, outputs, strict=True)]
        self.schema = self.arrow.schema(fields)

    def _type(self, port: Port, stacked: bool) -> Any:
        dtype = storable(np.zeros(0, port.element_type.dtype)).dtype
        value = self.arrow.string() if dtype.kind in "OUS" else self.arrow.from_numpy_dtype(dtype)
        shape = port.partial_shape
        dims = None if shape.rank is None else tuple(shape)[1 if stacked else 0 :]
        if dims is None or not all(d.is_static for d in dims) or any(d.lo == 0 for d in dims):
            return self.arrow.struct({"shape": self.arrow.list_(self.arrow.int64()), "data": self.arrow.list_(value)})
        sizes = [d.lo for d in dims]
        if not sizes:
            return value
        if len(sizes) == 1 or dtype.kind in "OUSb":
            return self.arrow.list_(value, int(np.prod(sizes)))
        return self.arrow.fixed_shape_tensor(value, sizes)

    def table(self, rows: Sequence[ResultRow]) -> Any:
        """A table of (input, copied columns, outputs); outputs that are None become nulls."""
        columns = [self.arrow.array([shown(name) for name, _, _ in rows], self.arrow.string())]
        columns += carried_columns(self.carried, [c for _, c, _ in rows]) if self.carried else []
        for k, name in enumerate(self.names):
            type_ = self.schema.field(name).type
            columns.append(self._column([None if o is None else storable(o[k]) for _, _, o in rows], type_))
        return self.arrow.table(columns, schema=self.schema)

    def _column(self, values: list[Array | None], type_: Any) -> Any:
        arrow = self.arrow
        if arrow.types.is_struct(type_):
            cells = [None if v is None else {"shape": list(v.shape), "data": v.ravel()} for v in values]
            return arrow.array(cells, type_)
        if not isinstance(type_, arrow.FixedShapeTensorType):
            fixed = arrow.types.is_fixed_size_list(type_)
            return arrow.array([None if v is None else v.ravel() if fixed else v.item() for v in values], type_)
        storage = arrow.array([None if v is None else v.ravel() for v in values], type_.storage_type)
        return arrow.ExtensionArray.from_storage(type_, storage)


GROUP = 1_000
"""Rows per row group of the final file."""


def write_tables(schema: Any, tables: Iterable[Any], stream: IO[bytes]) -> None:
    """Merge tables into one parquet file whose row groups do not depend on the sizes of the tables."""
    arrow = extra("pyarrow", "parquet")
    with parquet_writer(stream, schema) as write:
        waiting: list[Any] = []
        count = 0
        for table in tables:
            waiting.append(table if table.schema.equals(schema) else table.cast(schema))
            count += table.num_rows
            while count >= GROUP:
                joined = arrow.concat_tables(waiting)
                write(joined.slice(0, GROUP))
                waiting, count = [joined.slice(GROUP)], count - GROUP
        if count:
            write(arrow.concat_tables(waiting))
