"""Formats of one common output: JSON lines, CSV, parquet. Each writes rows to parts and concatenates parts."""

from __future__ import annotations

import csv
import io
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from irload.arrays.npy import storable
from irload.batch.columns import ResultRow, TableFormat, write_tables
from irload.batch.manifest import RowRange
from irload.batch.names import shown
from irload.batch.parquet import open_parquet, parquet_writer
from irload.core.shape import without_unit_axes
from irload.core.tensor import Array

T = TypeVar("T")

KEPT = 8
"""Number of parts cached during concatenation: the rows of retried items alternate with rows of other parts."""


def runs_of(folder: Path, runs: Iterable[RowRange], load: Callable[[Path], T]) -> Iterator[tuple[T, RowRange]]:
    """Yield each run of rows with the part that contains it, loaded by `load`."""
    kept: OrderedDict[str, T] = OrderedDict()
    for run in runs:
        if run.part not in kept:
            kept[run.part] = load(folder / run.part)
            if len(kept) > KEPT:
                kept.popitem(last=False)
        kept.move_to_end(run.part)
        yield kept[run.part], run


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """JSON lines: the copied columns, and the greatest values of each output along its last axis.

    Axes of size 1 at the end of an output are ignored.
    `labels` name the values of outputs that have as many values as there are labels.
    """

    names: tuple[str, ...]
    top: int = 5
    labels: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    def encode(self, rows: Sequence[ResultRow]) -> bytes:
        """The lines of the rows."""
        lines: list[str] = []
        for name, carried, outputs in rows:
            values = [] if carried is None else carried.values()
            line: dict[str, Any] = {"input": shown(name), **dict(zip(self.carried, values, strict=bool(values)))}
            line |= {n: self._top(_with_values_last(o)) for n, o in zip(self.names, outputs or (), strict=True)}
            lines.append(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        return "".join(lines).encode("utf-8", "backslashreplace")

    def merge(self, folder: Path, runs: Iterable[RowRange], stream: IO[bytes]) -> None:
        """Write the lines of the runs."""
        for lines, run in runs_of(folder, runs, _lines):
            stream.writelines(lines[run.begin : run.end])

    def _top(self, output: Array) -> Any:
        if output.ndim > 1:
            return [self._top(row) for row in output]
        if output.dtype.kind in "OUS":
            return [str(v) for v in output] if output.ndim else str(output)
        numbers = np.atleast_1d(output).astype(np.float64)
        order = np.argsort(np.where(np.isnan(numbers), np.inf, -numbers), kind="stable")[: self.top].tolist()
        labels = [{"label": self.labels[k]} if numbers.size == len(self.labels) else {} for k in order]
        entries = zip(order, labels, np.atleast_1d(output)[order], strict=True)
        return [{"index": k, **label, "value": number(value)} for k, label, value in entries]


def _with_values_last(output: Array) -> Array:
    """The output without axes of size 1 at its end, except for texts."""
    return output if output.dtype.kind in "OUS" else output.reshape(without_unit_axes(output.shape))


def number(value: Any) -> float | int | bool | None:
    """An output value as JSON, floats with the fewest digits that are exact in f32; None for NaN and infinities."""
    if value.dtype.kind in "iub":
        return value.item()
    if not np.isfinite(value):
        return None
    return float(value) if value.dtype == np.float64 else float(np.format_float_positional(np.float32(value)))


@dataclass(frozen=True, slots=True)
class CsvRows:
    """CSV: the copied columns, one column per value of an output of static shape, JSON for other outputs.

    `columns` are the columns of each output.
    """

    columns: tuple[tuple[str, ...], ...]
    carried: tuple[str, ...] = ()

    def encode(self, rows: Sequence[ResultRow]) -> bytes:
        """Encode each row as one line of JSON: names may contain line breaks, which CSV would preserve."""
        lines: list[str] = []
        for name, carried, outputs in rows:
            values = [] if carried is None else carried.values()
            cells: list[Any] = [shown(name), *map(_csv_cell, values)]
            for columns, output in zip(self.columns, outputs or (), strict=True):
                cells += self._cells(storable(output), len(columns))
            lines.append(json.dumps(cells, ensure_ascii=False, allow_nan=False) + "\n")
        return "".join(lines).encode("utf-8", "backslashreplace")

    def merge(self, folder: Path, runs: Iterable[RowRange], stream: IO[bytes]) -> None:
        """Write the header and the rows of the runs."""
        text = io.TextIOWrapper(stream, "utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["input", *self.carried, *(name for names in self.columns for name in names)])
        for lines, run in runs_of(folder, runs, _lines):
            writer.writerows(json.loads(line) for line in lines[run.begin : run.end])
        text.flush()
        text.detach()

    def _cells(self, output: Array, count: int) -> list[Any]:
        flat = [str(v) if output.dtype.kind in "US" else number(v) for v in output.ravel()]
        if count == len(flat):
            return flat
        shaped = np.array([*flat, None], object)[:-1].reshape(output.shape).tolist()
        return [json.dumps(shaped, ensure_ascii=False)]


def _csv_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, allow_nan=False) if isinstance(value, dict | list) else value


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """The columns of a parquet file."""

    format: TableFormat

    def encode(self, rows: Sequence[ResultRow]) -> bytes:
        """A parquet file of rows."""
        stream = io.BytesIO()
        with parquet_writer(stream, self.format.schema) as write:
            write(self.format.table(rows))
        return stream.getvalue()

    def merge(self, folder: Path, runs: Iterable[RowRange], stream: IO[bytes]) -> None:
        """Write one parquet file of the runs."""
        slices = (table.slice(run.begin, run.end - run.begin) for table, run in runs_of(folder, runs, read_part))
        write_tables(self.format.schema, slices, stream)


def read_part(file: Path) -> Any:
    """The table of a part."""
    with open_parquet(file) as opened:
        return opened.read()
