"""Where results go: a file an item, or parts of one common file that are put together at the end."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.lib import format as npy

from irload.arrays import storable
from irload.batch.columns import TableFormat, read_part, write_tables
from irload.batch.durable import write_files
from irload.batch.extras import extra
from irload.batch.items import Item, Record
from irload.core.tensor import Array
from irload.write.atomic import write_atomically

ItemOutputs = tuple[Item, tuple[Array, ...], bool]
"""An item, its outputs, and whether axis 0 of them counts several samples."""

FIRST_DAY = (1980, 1, 1, 0, 0, 0)


class Sink(Protocol):
    """Stores the results of a task."""

    def store(self, results: Sequence[ItemOutputs]) -> tuple[list[Record], str]:
        """A record for each result, and the name of the part that holds them, if any. Raises OSError."""
        ...


class ReturnSink:
    """Stores nothing: the records carry the outputs."""

    def store(self, results: Sequence[ItemOutputs]) -> tuple[list[Record], str]:
        return [Record(item.name, samples=_samples(o, many), outputs=o) for item, o, many in results], ""


@dataclass(frozen=True, slots=True)
class FolderSink:
    """A .npz or .npy an item, named after its input."""

    root: Path
    scratch: Path
    kind: Literal["npz", "npy"]
    names: tuple[str, ...]

    def path(self, item: Item) -> Path:
        """The file that the outputs of an item go to."""
        return self.root / f"{item.key}.{self.kind}"

    def store(self, results: Sequence[ItemOutputs]) -> tuple[list[Record], str]:
        files: list[tuple[Path, bytes]] = []
        records: list[Record] = []
        for item, outputs, many in results:
            path, content = self.path(item), self._bytes(outputs)
            files.append((path, content))
            digest = hashlib.sha256(content).hexdigest()
            records.append(Record(item.name, str(path), digest, samples=_samples(outputs, many)))
        write_files(self.scratch, files)
        return records, ""

    def _bytes(self, outputs: tuple[Array, ...]) -> bytes:
        stream = io.BytesIO()
        if self.kind == "npy":
            npy.write_array(stream, np.asanyarray(storable(outputs[0])), allow_pickle=False)
            return stream.getvalue()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, output in zip(self.names, outputs, strict=True):
                # With one date for all, equal outputs have equal digests.
                with archive.open(zipfile.ZipInfo(f"{name}.npy", FIRST_DAY), "w", force_zip64=True) as member:
                    npy.write_array(member, np.asanyarray(storable(output)), allow_pickle=False)
        return stream.getvalue()


@dataclass(frozen=True, slots=True)
class PartsSink:
    """Rows of one common output, a part a task; `JsonLines` or `ParquetRows` know the form."""

    target: Path
    folder: Path
    scratch: Path
    form: JsonLines | ParquetRows

    def store(self, results: Sequence[ItemOutputs]) -> tuple[list[Record], str]:
        if not results:
            return [], ""
        records: list[Record] = []
        rows: list[Row] = []
        for item, outputs, many in results:
            digest = hashlib.sha256()
            for output in outputs:
                stored = storable(output)
                digest.update(repr((stored.dtype.str, stored.shape)).encode() + stored.tobytes())
            records.append(Record(item.name, str(self.target), digest.hexdigest(), samples=_samples(outputs, many)))
            rows += per_row(item, outputs, many)
        name = f"{results[0][0].number:012d}-{uuid.uuid4().hex[:12]}{self.target.suffix}"
        write_files(self.scratch, [(self.folder / name, self.form.bytes(rows))])
        return records, name

    def merge(self, names: Sequence[str]) -> None:
        """Put the parts together as the output, whole or not at all."""
        files = [self.folder / name for name in names]
        self.target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.target, lambda stream: self.form.merge(files, stream))


Row = tuple[str, Mapping[str, Any], tuple[Array, ...] | None]
"""The name of a sample, the columns carried over, its outputs (None where it failed)."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """JSON lines of the greatest values of each output along its last axis."""

    names: tuple[str, ...]
    top: int = 5
    labels: tuple[str, ...] = ()

    def bytes(self, rows: Sequence[Row]) -> bytes:
        lines: list[str] = []
        for name, carried, outputs in rows:
            line: dict[str, Any] = {"input": name, **carried}
            line |= {n: self._top(o) for n, o in zip(self.names, outputs or (), strict=True)}
            lines.append(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        return "".join(lines).encode("utf-8", "surrogateescape")

    def merge(self, files: Sequence[Path], stream: IO[bytes]) -> None:
        for file in files:
            stream.write(file.read_bytes())

    def _top(self, output: Array) -> Any:
        if output.ndim > 1:
            return [self._top(row) for row in output]
        if output.dtype.kind in "OUS":
            return [str(v) for v in output.ravel()]
        numbers = np.atleast_1d(output).astype(np.float64)
        order = np.argsort(np.where(np.isnan(numbers), np.inf, -numbers), kind="stable")[: self.top]
        return [self._entry(int(k), np.atleast_1d(output)[k]) for k in order]

    def _entry(self, index: int, value: Any) -> dict[str, Any]:
        label = {"label": self.labels[index]} if index < len(self.labels) else {}
        number: float | int | bool | None = value.item() if value.dtype.kind in "iub" else float(value)
        if isinstance(number, float):
            number = float(np.format_float_positional(np.float32(value))) if np.isfinite(number) else None
        return {"index": index, **label, "value": number}


@dataclass(frozen=True, slots=True)
class ParquetRows:
    """The columns of a parquet file."""

    format: TableFormat

    def bytes(self, rows: Sequence[Row]) -> bytes:
        stream = io.BytesIO()
        self._parquet().write_table(self.format.table(rows), stream)
        return stream.getvalue()

    def merge(self, files: Sequence[Path], stream: IO[bytes]) -> None:
        write_tables(self.format.schema, map(read_part, files), stream)

    def _parquet(self) -> Any:
        return extra("pyarrow.parquet", "parquet")


def _samples(outputs: tuple[Array, ...], many: bool) -> int:
    return len(outputs[0]) if many and outputs else 1


def per_row(item: Item, outputs: tuple[Array, ...], many: bool) -> list[Row]:
    """A row a sample; those of a stack are numbered."""
    if not many:
        return [(item.name, item.carried, outputs)]
    count = len(outputs[0])
    if count == 1:
        return [(item.name, item.carried, tuple(o[0] for o in outputs))]
    return [(f"{item.name}#{k}", item.carried, tuple(o[k] for o in outputs)) for k in range(count)]
