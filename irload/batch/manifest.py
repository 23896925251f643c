"""The record of a job: what became of each item. It outlives killed processes: SQLite commits whole or not at all."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from irload.batch.items import Record
from irload.errors import InputInvalid

_TABLES = """
CREATE TABLE IF NOT EXISTS job(name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS items(
    input TEXT PRIMARY KEY, status TEXT NOT NULL, output TEXT, digest TEXT, reason TEXT, samples INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parts(name TEXT PRIMARY KEY);
"""

DONE = "done"
FAILED = "failed"


class Manifest:
    """Items by input with status, output, digest and reason; the parts of a common output; what the job was.

    Open at most once at a time: a second job on the same output is refused. Raises OSError where the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = sqlite3.connect(path, timeout=1, isolation_level=None)
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            # A write-ahead log is one append a commit. Files are synced before they are recorded, so losing the last
            # records to a power cut costs only doing those items again.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("COMMIT")
            self._db.executescript(_TABLES)
        except sqlite3.OperationalError as error:
            self._db.close()
            if "locked" in str(error):
                raise InputInvalid(f"another job is writing there ({path} is locked)") from None
            raise _os_error(error, path) from None
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputInvalid(f"{path} is no manifest ({error}); --force starts the job anew") from None

    def close(self) -> None:
        """Leave one file: the log goes into the database."""
        self._db.close()

    def get(self, name: str) -> str | None:
        """A fact about the job."""
        row = self._db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def put(self, **facts: str) -> None:
        """Record facts about the job."""
        self._write([("INSERT OR REPLACE INTO job VALUES(?, ?)", facts.items())])

    def add(self, records: Sequence[Record], part: str = "") -> None:
        """Record what became of items together with the part that holds their results: both or neither."""
        rows = (
            (r.name, FAILED if r.reason else DONE, r.output or None, r.digest or None, r.reason or None, r.samples)
            for r in records
        )
        parts = [(part,)] if part else []
        self._write(
            [
                ("INSERT OR REPLACE INTO items VALUES(?, ?, ?, ?, ?, ?)", rows),
                ("INSERT OR REPLACE INTO parts VALUES(?)", parts),
            ]
        )

    def forget(self, names: Sequence[str]) -> None:
        """Drop the records of items."""
        self._write([("DELETE FROM items WHERE input = ?", [(n,) for n in names])])

    def done(self, name: str) -> str | None:
        """The output of an item that is done, None for others."""
        row = self._db.execute("SELECT output FROM items WHERE input = ? AND status = 'done'", (name,)).fetchone()
        return None if row is None else row[0]

    def count(self, status: str) -> int:
        """How many items have this status."""
        return self._db.execute("SELECT count(*) FROM items WHERE status = ?", (status,)).fetchone()[0]

    def samples(self) -> int:
        """How many samples were predicted."""
        return self._db.execute("SELECT coalesce(sum(samples), 0) FROM items WHERE status = 'done'").fetchone()[0]

    def failures(self, most: int) -> list[tuple[str, str]]:
        """The first failures, (input, reason) each."""
        query = "SELECT input, reason FROM items WHERE status = 'failed' ORDER BY input LIMIT ?"
        return self._db.execute(query, (most,)).fetchall()

    def parts(self) -> Iterator[str]:
        """The parts in the order of their items."""
        for (name,) in self._db.execute("SELECT name FROM parts ORDER BY name"):
            yield name

    def _write(self, statements: Sequence[tuple[str, Iterable[Any]]]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._abandon()
            raise _os_error(error, self.path) from None
        except BaseException:  # Ctrl-C between two statements
            self._abandon()
            raise

    def _abandon(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _os_error(error: sqlite3.OperationalError, path: Path) -> OSError:
    full = "full" in str(error)
    return OSError(errno.ENOSPC if full else errno.EIO, "No space left on device" if full else str(error), str(path))
