"""The files that a job's words name, in a fixed order, with memory bounded however many they are."""

from __future__ import annotations

import glob
import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

from irload.batch.images import SUFFIXES
from irload.batch.items import Item
from irload.errors import InputInvalid
from irload.graph import Port
from irload.input_files import split_word

ARRAYS = (".npy", ".npz")
TABLE = ".parquet"
KNOWN = (*ARRAYS, TABLE, *SUFFIXES)


class Listing:
    """Files by input. The names are kept and sorted in a temporary database, which SQLite spills to disk."""

    def __init__(self, words: Sequence[str], inputs: Sequence[Port]) -> None:
        self._db = sqlite3.connect("")
        weakref.finalize(self, self._db.close)
        self._db.execute("CREATE TABLE files(key TEXT, input TEXT, path TEXT)")
        by_input: dict[str, list[str]] = {}
        for word in words:
            port, pattern = split_word(inputs, word, os.path.exists)
            by_input.setdefault("" if port is None else port.any_name, []).append(pattern)
        self.inputs = list(by_input)
        for name, patterns in by_input.items():
            root = _root(patterns)
            rows = ((_key(path, root), name, path) for pattern in patterns for path in _files(pattern))
            while batch := list(islice(rows, 10_000)):
                self._db.executemany("INSERT INTO files VALUES(?, ?, ?)", batch)
        self._db.execute("CREATE INDEX order_of ON files(key, input, path)")
        self.total: int = self._one("SELECT count(DISTINCT key) FROM files")
        if not self.total:
            raise InputInvalid(f"no files of a known kind in {', '.join(words)} ({' '.join(KNOWN)})")
        self.tables: int = self._one("SELECT count(*) FROM files WHERE lower(path) LIKE '%.parquet'")
        if self.tables and self.tables != self._one("SELECT count(*) FROM files"):
            raise InputInvalid("a job reads .parquet files or others, not both")
        if not self.tables:
            self._require_distinct()

    def __iter__(self) -> Iterator[Item]:
        rows = self._db.execute("SELECT DISTINCT key, input, path FROM files ORDER BY key, input, path")
        for number, (key, group) in enumerate(groupby(rows, key=lambda row: row[0])):
            files = {name: path for _, name, path in group}
            missing = [name for name in self.inputs if name not in files]
            fault = f"there is no file for input '{missing[0]}'" if missing else ""
            yield Item(number, next(iter(files.values())), key, files, fault=fault)

    def paths(self) -> Iterator[str]:
        """The files of a job of one input."""
        for (path,) in self._db.execute("SELECT DISTINCT path FROM files ORDER BY key, path"):
            yield path

    def _require_distinct(self) -> None:
        twice = self._db.execute(
            "SELECT min(path), max(path) FROM files GROUP BY key, input HAVING min(path) != max(path) LIMIT 1"
        ).fetchone()
        if twice:
            raise InputInvalid(f"{twice[0]} and {twice[1]} would share one output; give them in jobs of their own")

    def _one(self, query: str) -> int:
        return self._db.execute(query).fetchone()[0]


def _root(patterns: Sequence[str]) -> str:
    """The folder that output names are relative to: what all patterns share."""
    roots: list[str] = []
    for pattern in patterns:
        fixed = Path(pattern)
        if not fixed.is_dir():
            while glob.has_magic(str(fixed)):
                fixed = fixed.parent
            fixed = fixed.parent if str(fixed) == pattern else fixed
        roots.append(os.path.abspath(fixed))
    try:
        return os.path.commonpath(roots)
    except ValueError:  # drives of Windows
        raise InputInvalid("the inputs lie on several drives; give them in jobs of their own") from None


def _key(path: str, root: str) -> str:
    return Path(os.path.relpath(path, root)).with_suffix("").as_posix()


def _files(pattern: str) -> Iterator[str]:
    """The files of a folder (below it, too), of a pattern, or the one named."""
    if os.path.isdir(pattern):
        yield from _below(pattern)
    elif os.path.exists(pattern):
        if Path(pattern).suffix.lower() not in KNOWN:
            raise InputInvalid(f"{pattern} is of no known kind; irload reads {' '.join(KNOWN)}")
        yield pattern
    elif glob.has_magic(pattern):
        for path in glob.iglob(pattern, recursive=True):
            if os.path.isfile(path) and Path(path).suffix.lower() in KNOWN:
                yield path
    else:
        raise InputInvalid(f"there is no file or folder {pattern}")


def _below(folder: str) -> Iterator[str]:
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif Path(entry.name).suffix.lower() in KNOWN and not entry.name.startswith("."):
                    yield entry.path
