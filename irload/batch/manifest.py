"""The record of a job: the status of each item, in SQLite, whose transactions survive killed processes."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irload.batch.items import ItemRecord
from irload.errors import InputInvalid

VERSION = 2
"""Version of the database schema."""

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
"""Number of item positions written per transaction."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows of a part that are also consecutive in the output."""

    part: str
    begin: int
    end: int


class Manifest:
    """Status, output, digest and reason of each item, the positions of its rows in the parts, and facts about the job.

    Only one process can open it at a time. Raises InputInvalid if another job has opened it, NoManifest for another
    file, and OSError if the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers: list[tuple[int, bytes]] = []
        self._db = sqlite3.connect(path, timeout=1, isolation_level=None)
        # Names of files need not be UTF-8: they are stored as bytes and decoded with surrogate escapes.
        self._db.text_factory = _text
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            # With a write-ahead log, a commit is one append. Files are synced before they are recorded, so if a power
            # cut loses the last records, only their items are repeated.
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
                raise InputInvalid(f"another job is writing to this output ({path} is locked)") from None
            raise _os_error(error, path) from None
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise NoManifest(f"{path} is not a manifest ({error}); --force restarts the job") from None

    def close(self) -> None:
        """Checkpoint the write-ahead log, which leaves one file."""
        self._db.close()

    def clear(self) -> None:
        """Delete the job and its items."""
        self._write([("DELETE FROM job", None), ("DELETE FROM items", None)])

    def get(self, name: str) -> str | None:
        """Return a fact about the job."""
        row = self._db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def put(self, **facts: str) -> None:
        """Record facts about the job."""
        rows = [(name, _bytes(value)) for name, value in facts.items()]
        self._write([("INSERT OR REPLACE INTO job VALUES(?, CAST(? AS TEXT))", rows)])

    def add(self, records: Sequence[ItemRecord]) -> None:
        """Record the results of items together with the positions of their rows, in one transaction."""
        text = "CAST(? AS TEXT)"
        statement = f"INSERT OR REPLACE INTO items VALUES({text}, ?, {text}, ?, {text}, ?, ?, ?, ?, ?)"
        self._write([(statement, map(_row, records))])

    def done(self, name: str) -> tuple[str, str] | None:
        """Return the output of a finished item and the stamp of its input, None for other items."""
        query = "SELECT output, stamp FROM items WHERE input = CAST(? AS TEXT) AND status = 'done'"
        row = self._db.execute(query, (_bytes(name),)).fetchone()
        return None if row is None else (row[0], row[1] or "")

    def count(self, status: str) -> int:
        """The number of items with this status that are still among the inputs."""
        return self._one("SELECT count(*) FROM items WHERE status = ? AND number IS NOT NULL", status)

    def failures(self, limit: int) -> list[tuple[str, str]]:
        """The first failures, (input, reason) each."""
        query = "SELECT input, reason FROM items WHERE status = 'failed' AND number IS NOT NULL ORDER BY number LIMIT ?"
        return self._db.execute(query, (limit,)).fetchall()

    # -- order ---------------------------------------------------------------------------------------------------------

    def unnumber(self) -> None:
        """Clear the positions of all items. Items that are still among the inputs get new ones."""
        self._write([("UPDATE items SET number = NULL", None)])

    def number(self, name: str, number: int) -> None:
        """Record the position of an item among the inputs. Writes are buffered until `flush`."""
        self._numbers.append((number, _bytes(name)))
        if len(self._numbers) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the buffered positions."""
        rows, self._numbers = self._numbers, []
        self._write([("UPDATE items SET number = ? WHERE input = CAST(? AS TEXT)", rows)])

    def removed(self) -> int:
        """The number of items that are no longer among the inputs."""
        return self._one("SELECT count(*) FROM items WHERE number IS NULL")

    def parts(self) -> list[str]:
        """The parts that contain rows."""
        rows = self._db.execute("SELECT DISTINCT part FROM items WHERE part IS NOT NULL ORDER BY part")
        return [part for (part,) in rows]

    def runs(self) -> Iterator[RowRange]:
        """The positions of the output's rows in the parts, in input order."""
        query = "SELECT part, row, samples FROM items WHERE part IS NOT NULL AND number IS NOT NULL ORDER BY number"
        run: RowRange | None = None
        for part, row, samples in self._db.execute(query):
            if run is not None and run.part == part and run.end == row:
                run = RowRange(part, run.begin, row + samples)
                continue
            if run is not None:
                yield run
            run = RowRange(part, row, row + samples)
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
    """The file is not a manifest, or has another version."""


def _row(r: ItemRecord) -> tuple[Any, ...]:
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
