"""A folder in the user's cache, of bounded size, whose files only this user and root can have written.

Damaged files, and files that other users can write, count as absent. Disk errors are ignored, as all contents can be
recomputed.
"""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

from irload.record import record
from irload.safety.trusted import distrust, is_ours
from irload.system.machine import cache_folder
from irload.system.portable import READ_FLAGS, replace

SLACK = 8
"""Eviction leaves 1 / `SLACK` of the bound free, as other processes may write before the next one."""
UNCOUNTED = 64
"""A process writes 1 / `UNCOUNTED` of the bound before it lists the folder again."""

_warned: list[str] = []
"""The reason of the warning that the cache is unused, which is issued once per process."""


@record()
class Contents:
    """The path of a folder or a single file, the number of files, and their size in bytes."""

    path: Path
    count: int
    nbytes: int


class PrivateFolder:
    """Files with one suffix. Above `largest` bytes the least recently used ones are evicted; None: unbounded.

    `name`: the folder in the user's cache, "" for the cache itself, unless `folder` is another.
    """

    def __init__(self, name: str, ending: str, largest: int | None = None, folder: Path | None = None) -> None:
        self._name = name
        self._ending = ending
        self._largest = largest
        self._folder = folder
        self._unlisted = 0
        """Bytes to write until the folder is listed; zero at first, as other processes write, too."""

    @property
    def largest(self) -> int | None:
        """The bound in bytes."""
        return self._largest

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return Path(os.path.abspath(self._folder or cache_folder() / self._name))

    def open(self, name: str) -> FileIO | None:
        """Open a file and mark it as used now; None if it is missing or not trusted."""
        folder = self.folder
        path = os.path.join(folder, name + self._ending)
        with suppress(OSError):
            if not self._is_private():
                return None
            file = FileIO(os.open(path, READ_FLAGS | getattr(os, "O_NOFOLLOW", 0)))
            if _is_private_file(os.fstat(file.fileno())):
                with suppress(OSError):
                    os.utime(path)
                return file
            file.close()
        return None

    def write(self, name: str, pieces: Iterable[bytes]) -> bool:
        """Write a file in pieces, atomically. True on success."""
        with suppress(OSError):
            handle, temporary = self._temporary()
            try:
                with os.fdopen(handle, "wb") as file:
                    file.writelines(pieces)
                    size = file.tell()
                replace(temporary, self.folder / f"{name}{self._ending}")
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            self._unlisted -= size
            if self._unlisted < 0 and self._largest is not None:
                self.trim(self._largest, SLACK)
            return True
        return False

    def trim(self, largest: int, slack: int = 0) -> None:
        """Evict the least recently used files if all files exceed `largest` bytes.

        `slack`: the fraction of `largest` that is then left free.
        """
        files = list(self._files())
        total = sum(status.st_size for _, status in files)
        if total > largest:
            rest = largest - (largest // slack if slack else 0)
            files.sort(key=lambda f: f[1].st_mtime)
            for path, status in files:
                if total <= rest:
                    break
                with suppress(OSError):
                    os.unlink(path)
                    total -= status.st_size
        self._unlisted = max(min(largest // UNCOUNTED, largest - total), 0)

    def contents(self) -> Contents:
        """The current contents."""
        sizes = [status.st_size for _, status in self._files()]
        return Contents(self.folder, len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all files, and return the contents before."""
        contents = self.contents()
        self.trim(-1)
        return contents

    def _temporary(self) -> tuple[int, str]:
        """Create a file in the folder. Raises OSError, and warns about a folder that the user chose, if it cannot."""
        from tempfile import mkstemp  # lazy import of many modules, not needed when the cache is only read

        try:
            self._make(self.folder)
            if self._is_private():
                return mkstemp(dir=self.folder, suffix=".tmp")
        except OSError as error:
            if self._folder is None and os.environ.get("IRLOAD_CACHE_DIR"):
                self._warn(f"it cannot be written ({error.strerror or error})")
            raise
        raise PermissionError

    def _make(self, folder: Path) -> None:
        """Create a folder and its missing parents with mode 700, independent of the umask. Raises OSError."""
        if not os.path.lexists(folder):
            self._make(folder.parent)
            if not self._is_trusted(distrust(folder.parent, shared=True)):
                raise PermissionError
            folder.mkdir(mode=0o700, exist_ok=True)

    def _is_private(self) -> bool:
        """Whether only this user and root can change the folder; warns if others can. Raises OSError."""
        is_inside = bool(self._name) and self._folder is None
        return self._is_trusted(distrust(self.folder, link=not is_inside))

    def _is_trusted(self, reason: str | None) -> bool:
        if reason is not None:
            self._warn(reason)
        return reason is None

    def _warn(self, reason: str) -> None:
        if not _warned:
            _warned.append(reason)
            cache = self._folder or cache_folder()
            warnings.warn(
                f"the cache {cache} is not used: {reason}; IRLOAD_CACHE_DIR sets another folder", stacklevel=2
            )

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        with suppress(OSError):
            if self._is_private():
                with os.scandir(self.folder) as entries:
                    for entry in entries:
                        if entry.name.endswith((self._ending, ".tmp")):
                            with suppress(OSError):
                                yield entry.path, entry.stat(follow_symlinks=False)


def _is_private_file(status: os.stat_result) -> bool:
    """Whether it is a regular file that only this user and root can write."""
    writable = stat.S_IWGRP | stat.S_IWOTH if hasattr(os, "geteuid") else 0
    return stat.S_ISREG(status.st_mode) and is_ours(status) and not status.st_mode & writable
