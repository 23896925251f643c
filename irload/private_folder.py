"""A folder in the user's cache: files that nobody else may have written, which may take so many bytes together.

What is damaged, foreign or writable by others counts as absent, and nothing is raised where the disk fails: whatever is
kept can be made again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

from irload.machine import cache_folder
from irload.portable import replace
from irload.record import record


@record()
class Contents:
    """What a folder holds: where, how many files, and their bytes."""

    folder: Path
    count: int
    nbytes: int


class PrivateFolder:
    """Files with one ending. Beyond `largest` bytes those used longest ago go.

    `name`: the folder in the user's cache, unless `folder` is another.
    """

    def __init__(self, name: str, ending: str, largest: int, folder: Path | None = None) -> None:
        self._name = name
        self._ending = ending
        self._largest = largest
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder or cache_folder() / self._name

    def open(self, name: str) -> FileIO | None:
        """A file for reading, None where there is none to be trusted. It counts as used now."""
        folder = self.folder
        path = os.path.join(folder, name + self._ending)
        with suppress(OSError):
            if not _is_private(os.stat(folder)):
                return None
            file = FileIO(path)
            if _is_private(os.fstat(file.fileno())):
                with suppress(OSError):
                    os.utime(path)
                return file
            file.close()
        return None

    def write(self, name: str, pieces: Iterable[bytes]) -> bool:
        """Keep a file made of pieces; a reader sees all of it or nothing. True where that went well."""
        from tempfile import mkstemp  # which imports much, and what is found is not written

        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(self.folder.stat()):
                return False
            handle, temporary = mkstemp(dir=self.folder, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.writelines(pieces)
                replace(temporary, self.folder / f"{name}{self._ending}")
                return True
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        return False

    def trim(self, largest: int | None = None) -> None:
        """Remove the files used longest ago until the rest takes no more than `largest` bytes."""
        found = sorted(self._files(), key=lambda f: -f[1].st_mtime)
        total = 0
        for path, status in found:
            total += status.st_size
            if total > (self._largest if largest is None else largest):
                with suppress(OSError):
                    path.unlink()

    def contents(self) -> Contents:
        """What is there."""
        sizes = [status.st_size for _, status in self._files()]
        return Contents(self.folder, len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all files, and give what was there."""
        found = self.contents()
        self.trim(-1)
        return found

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.suffix in (self._ending, ".tmp"):
                    with suppress(OSError):
                        yield path, path.stat()


def _is_private(status: os.stat_result) -> bool:
    """True for what belongs to this user, and to which nobody else may write."""
    own = getattr(os, "geteuid", None)
    return (own is None or status.st_uid == own()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
