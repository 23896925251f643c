"""The files selected by a job's arguments, in a fixed order, with bounded memory for any number of files."""

from __future__ import annotations

import glob
import hashlib
import os
import sqlite3
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

from irload.arrays.input_files import split_word
from irload.batch.images import SUFFIXES
from irload.batch.items import Item
from irload.batch.names import JOB_FOLDER, is_inside, real, shown
from irload.errors import InputInvalid, ReadError, Where
from irload.graph import Port
from irload.safety.files import open_regular

ARRAYS = (".npy", ".npz")
TABLE = ".parquet"
KNOWN = (*ARRAYS, TABLE, *SUFFIXES)


class Listing:
    """Files by input. The names are stored and sorted in a temporary database, which SQLite spills to disk.

    `outputs` are the files and folders that the job writes: they are excluded from folders and patterns, and refused if
    they are named.
    """

    def __init__(self, words: Sequence[str], inputs: Sequence[Port], outputs: Sequence[str] = ()) -> None:
        self._outputs = [os.path.realpath(path) for path in outputs]
        self._db = sqlite3.connect("")
        weakref.finalize(self, self._db.close)
        # Names are stored as bytes, as file names need not be valid UTF-8.
        self._db.execute("CREATE TABLE files(key BLOB, full BLOB, input TEXT, path BLOB, suffix TEXT)")
        by_input: dict[str, list[str]] = {}
        for word in words:
            port, pattern = split_word(inputs, word, os.path.exists)
            by_input.setdefault("" if port is None else port.any_name, []).extend(_expanded(pattern))
        self.inputs = list(by_input)
        for name, patterns in by_input.items():
            root = _root(patterns)
            rows = (_row(path, root, name) for pattern in patterns for path in self._files(pattern))
            while batch := list(islice(rows, 10_000)):
                self._db.executemany("INSERT INTO files VALUES(?, ?, ?, ?, ?)", batch)
        self._db.execute("CREATE INDEX order_of ON files(key, full, input, path)")
        self.total: int = self._one(f"SELECT count(DISTINCT {'full' if self._single else 'key'}) FROM files")
        if not self.total:
            raise InputInvalid(f"no supported files in {', '.join(map(shown, words))} ({' '.join(KNOWN)})")
        self.tables: int = self._one("SELECT count(*) FROM files WHERE suffix = '.parquet'")
        if self.tables and self.tables != self._one("SELECT count(*) FROM files"):
            raise InputInvalid("a job reads .parquet files or others, not both")
        if not self._single:
            self._require_distinct()

    @property
    def _single(self) -> bool:
        return len(self.inputs) == 1

    @property
    def images(self) -> list[str]:
        """The inputs for which there are images."""
        suffixes = ", ".join(map(repr, SUFFIXES))
        return [name for (name,) in self._db.execute(f"SELECT DISTINCT input FROM files WHERE suffix IN ({suffixes})")]

    @property
    def names_inputs(self) -> bool:
        """Whether an argument or a file names the input of its arrays."""
        named = "input != '' OR suffix IN ('.npz', '.parquet')"
        return bool(self._one(f"SELECT count(*) FROM files WHERE {named}"))

    def __iter__(self) -> Iterator[Item]:
        if self._single:
            for number, (path, key) in enumerate(self.paths()):
                yield Item(number, path, key, {self.inputs[0]: path})
            return
        rows = self._db.execute("SELECT DISTINCT key, input, path FROM files ORDER BY key, input, path")
        for number, (key, group) in enumerate(groupby(rows, key=lambda row: row[0])):
            files = {name: os.fsdecode(path) for _, name, path in group}
            missing = [name for name in self.inputs if name not in files]
            fault = f"there is no file for input '{missing[0]}'" if missing else ""
            yield Item(number, next(iter(files.values())), os.fsdecode(key), files, fault=fault)

    def paths(self) -> Iterator[tuple[str, str]]:
        """The files of a job of one input with the keys of their outputs, without suffix if that is unique."""
        rows = self._db.execute("SELECT key, full, min(path) FROM files GROUP BY full ORDER BY key, full")
        for key, group in groupby(rows, key=lambda row: row[0]):
            files = [(full, path) for _, full, path in group]
            for full, path in files:
                yield os.fsdecode(path), os.fsdecode(key if len(files) == 1 else full)

    def _require_distinct(self) -> None:
        twice = self._db.execute(
            "SELECT min(path), max(path) FROM files GROUP BY key, input HAVING min(full) != max(full) LIMIT 1"
        ).fetchone()
        if twice:
            first, second = (shown(os.fsdecode(path)) for path in twice)
            raise InputInvalid(f"{first} and {second} would share one output; give them in separate jobs")

    def _one(self, query: str) -> int:
        return self._db.execute(query).fetchone()[0]

    def _is_output(self, path: str) -> bool:
        return any(is_inside(real(path), output) for output in self._outputs)

    def _files(self, pattern: str) -> Iterator[str]:
        """The files in a folder (recursively), the files that match a pattern, or the named file."""
        if os.path.lexists(pattern) and self._is_output(os.path.realpath(pattern)):
            raise InputInvalid(f"{shown(pattern)} is the output of this job, or inside it; choose another output")
        if os.path.isdir(pattern):
            yield from self._below(pattern)
        elif os.path.exists(pattern):
            if Path(pattern).suffix.lower() not in KNOWN:
                raise InputInvalid(f"{shown(pattern)} has an unsupported suffix; irload reads {' '.join(KNOWN)}")
            yield pattern
        elif glob.has_magic(pattern):
            for path in glob.iglob(pattern, recursive=True):
                if Path(path).suffix.lower() in KNOWN and not os.path.isdir(path) and not self._is_output(path):
                    yield path
        else:
            raise ReadError("no such file or folder", Where(shown(pattern)))

    def _below(self, folder: str) -> Iterator[str]:
        pending = [folder]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if not self._is_output(entry.path) and not _of_a_job(entry):
                            pending.append(entry.path)
                    elif (
                        Path(entry.name).suffix.lower() in KNOWN
                        and not entry.name.startswith(".")
                        and not self._is_output(entry.path)
                    ):
                        yield entry.path


def _of_a_job(entry: os.DirEntry[str]) -> bool:
    """True for the folder with a job's internal files."""
    return entry.name.endswith(JOB_FOLDER) and os.path.exists(os.path.join(entry.path, "manifest.sqlite"))


def stamp(paths: Iterable[str], *, hashed: bool) -> str:
    """A stamp of the files: sizes and times, or the SHA-256 of their contents; "" if a file is missing."""
    parts: list[str] = []
    for path in paths:
        try:
            if hashed:
                with os.fdopen(open_regular(path, "the input")[0], "rb") as stream:
                    parts.append(hashlib.file_digest(stream, "sha256").hexdigest())
            else:
                info = os.stat(path)
                parts.append(f"{info.st_size}:{info.st_mtime_ns}")
        except (OSError, ReadError):
            return ""
    return " ".join(parts)


def _expanded(pattern: str) -> list[str]:
    """The names in a list: `-` reads stdin, `@FILE` a file; separated by line breaks or NUL."""
    if pattern == "-":
        content = sys.stdin.buffer.read()
    elif pattern.startswith("@") and not os.path.exists(pattern):
        with os.fdopen(open_regular(pattern[1:], "the list")[0], "rb") as stream:
            content = stream.read()
    else:
        return [pattern]
    names = content.split(b"\0") if b"\0" in content else [line.rstrip(b"\r") for line in content.split(b"\n")]
    paths = [os.fsdecode(name) for name in names if name]
    if not paths:
        raise InputInvalid("the list of inputs is empty")
    return paths


def _root(patterns: Sequence[str]) -> str:
    """The folder that output names are relative to: the common prefix of all patterns."""
    common: str | None = None
    for pattern in patterns:
        fixed = Path(pattern)
        if not fixed.is_dir():
            while not os.path.lexists(fixed) and glob.has_magic(str(fixed)):
                fixed = fixed.parent
            fixed = fixed.parent if str(fixed) == str(Path(pattern)) else fixed
        root = os.path.abspath(fixed)
        try:
            common = root if common is None else os.path.commonpath([common, root])
        except ValueError:  # drives of Windows
            raise InputInvalid("the inputs are on several drives; give them in separate jobs") from None
    return common or os.getcwd()


def _row(path: str, root: str, name: str) -> tuple[bytes, bytes, str, bytes, str]:
    full = Path(os.path.relpath(path, root))
    key = full.with_suffix("").as_posix()
    return os.fsencode(key), os.fsencode(full.as_posix()), name, os.fsencode(path), full.suffix.lower()
