"""The destination and format of results, in a form that can be sent to workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irload.batch.columns import TableFormat, column_names
from irload.batch.forms import CsvRows, JsonLines, ParquetRows
from irload.batch.items import Item
from irload.batch.labels import label_axis, require_fit
from irload.batch.names import JOB_FOLDER
from irload.batch.predictors import AnyPredictor
from irload.batch.sinks import FolderSink, PartsSink, ReturnSink, Sink
from irload.core.shape import Shape, without_unit_axes
from irload.errors import InputInvalid
from irload.graph import Port

FILES = ("parquet", "jsonl", "csv")
"""The kinds that are a single file."""
CSV_COLUMNS = 4096
"""Number of values from which an output is one JSON column in CSV."""


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """The destination of results. `kind` npz or npy: one file per item below `path`; one of FILES: one file, `path`.

    `carried` are the fields of the table columns that are copied.
    """

    path: Path
    kind: str
    top: int = 5
    labels: tuple[str, ...] = ()
    carried: tuple[Any, ...] = ()

    @property
    def is_folder(self) -> bool:
        """True for one file per item."""
        return self.kind not in FILES

    @property
    def job(self) -> Path:
        """The folder of the job's internal files: its manifest, parts of a common output, temporary files."""
        return self.path / JOB_FOLDER if self.is_folder else self.path.with_name(f"{self.path.name}{JOB_FOLDER}")

    @property
    def manifest(self) -> Path:
        """The manifest, an SQLite database."""
        return self.job / "manifest.sqlite"

    @property
    def parts(self) -> Path:
        """The parts of a common output."""
        return self.job / "parts"

    @property
    def scratch(self) -> Path:
        """The folder of temporary files."""
        return self.job / "scratch"

    def output(self, item: Item) -> Path:
        """The output file of an item. Raises InputInvalid if it would be outside the folder."""
        return self._folder(()).path(item) if self.is_folder else self.path

    def sink(self, predictor: AnyPredictor) -> Sink:
        """The sink of this target. Raises InputInvalid if the model's outputs do not fit it."""
        names = predictor.output_names
        if self.kind == "npy" and len(names) != 1:
            raise InputInvalid(f"a .npy holds one array and the model has {len(names)} outputs; use --format npz")
        return self._folder(tuple(names)) if self.is_folder else self.merger(predictor)

    def merger(self, predictor: AnyPredictor) -> PartsSink:
        """The parts of a common output."""
        names, carried = column_names(predictor.output_names, [f.name for f in self.carried])
        stacked = predictor.takes.stacked
        if self.kind == "jsonl":
            form = JsonLines(tuple(names), self.top, self.labels, tuple(carried))
        elif self.kind == "csv":
            columns = (self._columns(n, p, stacked) for n, p in zip(names, predictor.outputs, strict=True))
            form = CsvRows(tuple(columns), tuple(carried))
        else:
            form = ParquetRows(TableFormat(predictor.outputs, predictor.output_names, self.carried, stacked=stacked))
        return PartsSink(self.path, self.parts, self.scratch, form)

    def require_labels(self, predictor: AnyPredictor) -> None:
        """Raise InputInvalid if there are labels, and no output has as many values along its last axis."""
        if self.labels:
            sizes = [label_axis(p, stacked=predictor.takes.stacked) for p in predictor.outputs]
            require_fit(self.labels, predictor.output_names, sizes)

    def _columns(self, name: str, port: Port, stacked: bool) -> tuple[str, ...]:
        shape = port.partial_shape
        sample = shape if shape.rank is None or not stacked else Shape(*shape[1:])
        if sample.rank is None or not sample.is_static:
            return (name,)
        if not sample.static:
            return (name,)
        if math.prod(sample.static) > CSV_COLUMNS:
            return (name,)
        indices: Sequence[tuple[int, ...]] = _indices(sample.static)
        if without_unit_axes(sample.static) == (len(self.labels),):
            return tuple(f"{name}[{label}]" for label in self.labels)
        return tuple(f"{name}[{','.join(map(str, index))}]" for index in indices)

    def _folder(self, names: tuple[str, ...]) -> FolderSink:
        return FolderSink(self.path, self.scratch, "npy" if self.kind == "npy" else "npz", names)


def _indices(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    indices: list[tuple[int, ...]] = [()]
    for size in sizes:
        indices = [(*index, k) for index in indices for k in range(size)]
    return indices


def sink_of(target: OutputTarget | None, predictor: AnyPredictor) -> Sink:
    """The sink of a target; without a target, results are returned."""
    return ReturnSink() if target is None else target.sink(predictor)
