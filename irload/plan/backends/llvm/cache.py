"""Object files in the user's cache, by a key that says all they were made from; checked before they are run."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from irload.machine import cache_folder
from irload.portable import replace
from irload.record import record

LARGEST = 256 << 20
"""Bytes that the objects may take; beyond them those used longest ago go."""
WRITES = 64
"""Objects that a process writes before it looks at how many there are."""
_DIGEST = hashlib.sha256().digest_size


@record()
class Contents:
    """What the cache holds: where, how many objects, and their bytes."""

    folder: Path
    count: int
    nbytes: int


class ObjectCache:
    """Objects by the hash of their key. What is damaged, foreign or writable by others counts as absent.

    Each file is the digest of key and object, then the object. Nothing is raised where the disk fails: kernels are then
    compiled each time.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._written = 0

    @property
    def folder(self) -> Path:
        """Where the objects are."""
        return self._folder or cache_folder() / "kernels"

    def read(self, key: str) -> bytes | None:
        """The object of a key, None where there is none to be trusted."""
        folder = self.folder
        path = os.path.join(folder, _name(key))
        with suppress(OSError):
            if not _is_private(os.stat(folder)):
                return None
            with open(path, "rb", buffering=0) as file:
                if not _is_private(os.fstat(file.fileno())):
                    return None
                data = file.read()
            if data[:_DIGEST] == _digest(key, data[_DIGEST:]):
                with suppress(OSError):
                    os.utime(path)
                return data[_DIGEST:]
        return None

    def write(self, key: str, object: bytes) -> None:
        """Keep an object; a reader sees all of it or nothing."""
        from tempfile import mkstemp  # which imports much, and a warm cache is not written to

        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(self.folder.stat()):
                return
            handle, temporary = mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_digest(key, object) + object)
                replace(temporary, self.folder / _name(key))
                self._written += 1
                if self._written % WRITES == 0:
                    self.trim()
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise

    def trim(self, largest: int = LARGEST) -> None:
        """Remove the objects used longest ago until the rest takes no more than `largest` bytes."""
        found = sorted(self._files(), key=lambda f: -f[1].st_mtime)
        total = 0
        for path, status in found:
            total += status.st_size
            if total > largest:
                with suppress(OSError):
                    path.unlink()

    def contents(self) -> Contents:
        """What is there."""
        sizes = [status.st_size for _, status in self._files()]
        return Contents(self.folder, len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all objects, and give what was there."""
        found = self.contents()
        self.trim(-1)
        return found

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.suffix in (".o", ".tmp"):
                    with suppress(OSError):
                        yield path, path.stat()


def _name(key: str) -> str:
    return f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.o"


def _digest(key: str, object: bytes) -> bytes:
    return hashlib.sha256(b"%d\n%s\n%s" % (len(key), key.encode(), object)).digest()


def _is_private(status: os.stat_result) -> bool:
    """True for what belongs to this user, and to which nobody else may write."""
    own = getattr(os, "geteuid", None)
    return (own is None or status.st_uid == own()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
