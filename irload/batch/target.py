"""What a job writes and where, described so that it can be sent to workers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irload.batch.columns import TableFormat
from irload.batch.items import Item
from irload.batch.predictor import Predictor
from irload.batch.sinks import FolderSink, JsonLines, ParquetRows, PartsSink, ReturnSink, Sink
from irload.errors import InputInvalid

KINDS = ("npz", "npy", "parquet", "jsonl")


@dataclass(frozen=True, slots=True)
class Target:
    """Where results go. `kind` npz or npy: a file an item below `path`; parquet or jsonl: one file, `path`.

    `carried` are the fields of a table's columns that go along.
    """

    path: Path
    kind: str
    top: int = 5
    labels: tuple[str, ...] = ()
    carried: tuple[Any, ...] = ()

    @property
    def is_folder(self) -> bool:
        """True for a file an item."""
        return self.kind in ("npz", "npy")

    @property
    def job(self) -> Path:
        """The folder of the job's own files: its manifest, parts of a common output, files being written."""
        return self.path / ".batch" if self.is_folder else self.path.with_name(f"{self.path.name}.batch")

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
        """Files being written."""
        return self.job / "scratch"

    def output(self, item: Item) -> Path:
        """The file that the outputs of an item go to."""
        return self._folder(()).path(item) if self.is_folder else self.path

    def sink(self, predictor: Predictor) -> Sink:
        """What stores results for this target. Raises InputInvalid where the model's outputs do not fit it."""
        names = predictor.output_names
        if self.kind == "npy" and len(names) != 1:
            raise InputInvalid(f"a .npy holds one array and the model has {len(names)} outputs; take --format npz")
        return self._folder(tuple(names)) if self.is_folder else self.merger(predictor)

    def merger(self, predictor: Predictor) -> PartsSink:
        """The parts of a common output."""
        names = predictor.output_names
        if self.kind == "jsonl":
            form = JsonLines(tuple(names), self.top, self.labels)
        else:
            form = ParquetRows(TableFormat(predictor.outputs, names, self.carried, stacked=predictor.stacking.stacked))
        return PartsSink(self.path, self.parts, self.scratch, form)

    def _folder(self, names: tuple[str, ...]) -> FolderSink:
        return FolderSink(self.path, self.scratch, "npy" if self.kind == "npy" else "npz", names)


def sink_of(target: Target | None, predictor: Predictor) -> Sink:
    """What stores results: for no target, nothing, and the results come back."""
    return ReturnSink() if target is None else target.sink(predictor)
