"""The record of a job: what became of each item. It outlives killed processes: SQLite commits whole or not at all."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irload.batch.items import Record
from irload.errors import InputInvalid

VERSION = 2
"""Of the tables below."""

_TABLES = f"""
CREATE TABLE IF NOT EXISTS job(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS items(
    input TEXT PRIMARY KEY, status TEXT NOT NULL, output TEXT, digest TEXT, reason TEXT, samples INTEGER,
    number INTEGER, part TEXT, row INTEGER, stamp TEXT
) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""

DONE = "done"
FAILED = "failed"

BATCH = 1000
"""Items whose numbers are written together."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive rows of a part that are consecutive in the output, too."""

    part: str
    begin: int
    end: int


class Manifest:
    """Items by input with status, output, digest and reason; where in the parts their rows are; what the job was.

    Open at most once at a time: a second job on the same output is refused. Raises OSError where the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers: list[tuple[int, bytes]] = []
        self._db = sqlite3.connect(path, timeout=1, isolation_level=None)
        # Names of files need not be UTF-8: they go in as their bytes, and come out as Python's names of files.
        self._db.text_factory = _text
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            # A write-ahead log is one append a commit. Files are synced before they are recorded, so losing the last
            # records to a power cut costs only doing those items again.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("COMMIT")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION and self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise sqlite3.DatabaseError(f"version {version}, expected {VERSION}")
            self._db.executescript(_TABLES)
        except sqlite3.OperationalError as error:
            self._db.close()
            if "locked" in str(error):
                raise InputInvalid(f"another job is writing there ({path} is locked)") from None
            raise _os_error(error, path) from None
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise NoManifest(f"{path} is no manifest ({error}); --force starts the job anew") from None

    def close(self) -> None:
        """Leave one file: the log goes into the database."""
        self._db.close()

    def clear(self) -> None:
        """Forget the job and its items."""
        self._write([("DELETE FROM job", None), ("DELETE FROM items", None)])

    def get(self, name: str) -> str | None:
        """A fact about the job."""
        row = self._db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def put(self, **facts: str) -> None:
        """Record facts about the job."""
        rows = [(name, _bytes(value)) for name, value in facts.items()]
        self._write([("INSERT OR REPLACE INTO job VALUES(?, CAST(? AS TEXT))", rows)])

    def add(self, records: Sequence[Record]) -> None:
        """Record what became of items, together with where the parts hold their rows: all of it or nothing."""
        text = "CAST(? AS TEXT)"
        statement = f"INSERT OR REPLACE INTO items VALUES({text}, ?, {text}, ?, {text}, ?, ?, ?, ?, ?)"
        self._write([(statement, map(_row, records))])

    def done(self, name: str) -> tuple[str, str] | None:
        """The output of an item that is done and the stamp of its input, None for others."""
        query = "SELECT output, stamp FROM items WHERE input = CAST(? AS TEXT) AND status = 'done'"
        row = self._db.execute(query, (_bytes(name),)).fetchone()
        return None if row is None else (row[0], row[1] or "")

    def count(self, status: str) -> int:
        """How many items that are still among the inputs have this status."""
        return self._one("SELECT count(*) FROM items WHERE status = ? AND number IS NOT NULL", status)

    def failures(self, most: int) -> list[tuple[str, str]]:
        """The first failures, (input, reason) each."""
        query = "SELECT input, reason FROM items WHERE status = 'failed' AND number IS NOT NULL ORDER BY number LIMIT ?"
        return self._db.execute(query, (most,)).fetchall()

    # -- order ---------------------------------------------------------------------------------------------------------

    def unnumber(self) -> None:
        """Take the numbers off all items; those that are still among the inputs are given theirs again."""
        self._write([("UPDATE items SET number = NULL", None)])

    def number(self, name: str, number: int) -> None:
        """Record the position of an item among the inputs. Written with others: `flush` ends it."""
        self._numbers.append((number, _bytes(name)))
        if len(self._numbers) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the numbers."""
        rows, self._numbers = self._numbers, []
        self._write([("UPDATE items SET number = ? WHERE input = CAST(? AS TEXT)", rows)])

    def removed(self) -> int:
        """How many items are no longer among the inputs."""
        return self._one("SELECT count(*) FROM items WHERE number IS NULL")

    def parts(self) -> list[str]:
        """The parts that hold rows."""
        rows = self._db.execute("SELECT DISTINCT part FROM items WHERE part IS NOT NULL ORDER BY part")
        return [part for (part,) in rows]

    def runs(self) -> Iterator[Run]:
        """Where the rows of the output are, in the order of the inputs."""
        query = "SELECT part, row, samples FROM items WHERE part IS NOT NULL AND number IS NOT NULL ORDER BY number"
        run: Run | None = None
        for part, row, samples in self._db.execute(query):
            if run is not None and run.part == part and run.end == row:
                run = Run(part, run.begin, row + samples)
                continue
            if run is not None:
                yield run
            run = Run(part, row, row + samples)
        if run is not None:
            yield run

    # ------------------------------------------------------------------------------------------------------------------

    def _one(self, query: str, *values: Any) -> int:
        return self._db.execute(query, values).fetchone()[0]

    def _write(self, statements: Sequence[tuple[str, Iterable[Any] | None]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                if rows is None:
                    self._db.execute(statement)
                else:
                    self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._abandon()
            raise _os_error(error, self.path) from None
        except BaseException:  # Ctrl-C between two statements
            self._abandon()
            raise

    def _abandon(self) -> None:
        with suppress(sqlite3.OperationalError):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


class NoManifest(InputInvalid):
    """The file is no manifest, or one of another version."""


def _row(r: Record) -> tuple[Any, ...]:
    status = FAILED if r.reason else DONE
    output, reason = _bytes(r.output) or None, _bytes(r.reason) or None
    row = r.row if r.part else None
    return (
        _bytes(r.name), status, output, r.digest or None, reason, r.samples, r.number, r.part or None, row, r.stamp
    )  # fmt: skip


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _os_error(error: sqlite3.OperationalError, path: Path) -> OSError:
    full = "full" in str(error)
    return OSError(errno.ENOSPC if full else errno.EIO, "No space left on device" if full else str(error), str(path))
