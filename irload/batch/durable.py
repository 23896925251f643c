"""Writes files atomically and durably: to temporary names, all synced to disk together, then renamed."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from irload.system.portable import replace

_NAMES = frozenset({errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ})
"""Errors for a name that is too long or already used by a folder or file."""
SYNCFS_FROM = 8
"""Number of files above which syncing the entire file system is faster than syncing each file."""


def write_files(scratch: Path, files: Sequence[tuple[Path, bytes]]) -> dict[str, str]:
    """Write files, each completely or not at all. Returns the errors of files whose names are invalid.

    Raises OSError for any other error, after removing the files that were not renamed yet.
    """
    temporaries: list[str] = []
    refused: dict[str, str] = {}
    try:
        for _, content in files:
            temporary = os.path.join(scratch, uuid.uuid4().hex)  # building paths with pathlib costs more than writing
            temporaries.append(temporary)
            with open(temporary, "xb") as stream:
                stream.write(content)
                if len(files) < SYNCFS_FROM or _SYNCFS is None:
                    stream.flush()
                    os.fsync(stream.fileno())
        if len(files) >= SYNCFS_FROM and _SYNCFS is not None:
            _sync_file_system(scratch)
        for temporary, (path, _) in zip(temporaries, files, strict=True):
            try:
                _move(temporary, path)
            except OSError as error:
                if error.errno not in _NAMES:
                    raise
                refused[str(path)] = f"its results cannot be stored as {path}: {error.strerror}"
                os.unlink(temporary)
    except BaseException:
        for temporary in temporaries:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        raise
    return refused


def _move(temporary: str, path: Path) -> None:
    try:
        replace(temporary, path)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(temporary, path)


def _syncfs() -> Any:
    """The C library's syncfs, or None."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


_SYNCFS = _syncfs()


def _sync_file_system(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        if _SYNCFS(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)
