"""Destinations of results: one file per item, or parts of one common file that are concatenated at the end."""

from __future__ import annotations

import hashlib
import io
import os
import uuid
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.lib import format as npy

from irload.arrays.npy import storable
from irload.batch.columns import ResultRow
from irload.batch.durable import write_files
from irload.batch.forms import CsvRows, JsonLines, ParquetRows
from irload.batch.items import Item, ItemRecord
from irload.batch.manifest import RowRange
from irload.batch.names import inner, is_inside
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.system.portable import replace as replace_file
from irload.write.atomic import write_atomically

ItemOutputs = tuple[Item, tuple[Array, ...], bool]
"""An item, its outputs, and whether axis 0 of them counts several samples."""

FIRST_DAY = (1980, 1, 1, 0, 0, 0)


class Sink(Protocol):
    """Stores the results of a task."""

    def store(self, results: Sequence[ItemOutputs]) -> list[ItemRecord]:
        """Store results; return one record per result. Raises OSError."""
        ...


class ReturnSink:
    """Stores nothing: the records contain the outputs."""

    def store(self, results: Sequence[ItemOutputs]) -> list[ItemRecord]:
        return [ItemRecord(item.name, samples=_samples(o, many), outputs=o) for item, o, many in results]


@dataclass(frozen=True, slots=True)
class FolderSink:
    """One .npz or .npy per item, named after its input."""

    root: Path
    scratch: Path
    kind: Literal["npz", "npy"]
    names: tuple[str, ...]
    _inside: set[str] = field(default_factory=set[str])

    def path(self, item: Item) -> Path:
        """The output file of an item. Raises InputInvalid if it would be outside the folder."""
        path = self.root / f"{inner(item.key)}.{self.kind}"
        parent = str(path.parent)
        if parent not in self._inside:
            if not is_inside(os.path.realpath(parent), os.path.realpath(self.root)):
                raise InputInvalid(f"{parent} is a link that leads out of the output folder {self.root}")
            self._inside.add(parent)
        return path

    def store(self, results: Sequence[ItemOutputs]) -> list[ItemRecord]:
        files: list[tuple[Path, bytes]] = []
        records: list[ItemRecord] = []
        for item, outputs, many in results:
            try:
                path = self.path(item)
            except InputInvalid as error:
                records.append(ItemRecord(item.name, reason=str(error)))
                continue
            content = self._bytes(outputs)
            digest = hashlib.sha256(content).hexdigest()
            files.append((path, content))
            records.append(ItemRecord(item.name, str(path), digest, samples=_samples(outputs, many)))
        refused = write_files(self.scratch, files)
        for k, record in enumerate(records):
            reason = refused.get(record.output, "") if record.output else ""
            records[k] = ItemRecord(record.name, reason=reason) if reason else record
        return records

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
    """Rows of one common output, one part per task, written in one of its formats."""

    target: Path
    folder: Path
    scratch: Path
    form: JsonLines | CsvRows | ParquetRows

    def store(self, results: Sequence[ItemOutputs]) -> list[ItemRecord]:
        if not results:
            return []
        name = f"{results[0][0].number:012d}-{uuid.uuid4().hex[:12]}.part"
        records: list[ItemRecord] = []
        rows: list[ResultRow] = []
        for item, outputs, many in results:
            digest = hashlib.sha256()
            for output in outputs:
                stored = storable(output)
                digest.update(repr((stored.dtype.str, stored.shape)).encode() + stored.tobytes())
            item_rows = per_row(item, outputs, many)
            stored_as = ItemRecord(item.name, str(self.target), digest.hexdigest(), samples=len(item_rows))
            records.append(replace(stored_as, part=name, row=len(rows)))
            rows += item_rows
        write_files(self.scratch, [(self.folder / name, self.form.encode(rows))])
        return records

    def merge(self, runs: Iterable[RowRange]) -> None:
        """Concatenate runs of rows into the output, atomically."""
        self.target.parent.mkdir(parents=True, exist_ok=True)
        # Written to the folder of internal files first, where the next job removes leftovers of a killed process.
        whole = self.scratch / f"{uuid.uuid4().hex}{self.target.suffix}"
        write_atomically(whole, lambda stream: self.form.merge(self.folder, runs, stream))
        replace_file(whole, self.target)


def _samples(outputs: tuple[Array, ...], many: bool) -> int:
    return len(outputs[0]) if many and outputs else 1


def per_row(item: Item, outputs: tuple[Array, ...], many: bool) -> list[ResultRow]:
    """One row per sample; the samples of a stack are numbered."""
    if not many:
        return [(item.name, item.carried, outputs)]
    count = len(outputs[0])
    if count == 1:
        return [(item.name, item.carried, tuple(o[0] for o in outputs))]
    return [(f"{item.name}#{k}", item.carried, tuple(o[k] for o in outputs)) for k in range(count)]
