"""Atomic writes: a file appears complete or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from irload.system.portable import replace


def write_atomically(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a temporary file in the folder of `path`, flush it to disk, and rename it to `path`.

    An existing file is replaced; if `write` fails, it is unchanged. A device or a pipe is not replaced, but written to.
    Raises OSError, which names `path`.
    """
    path = Path(path)
    try:
        if _is_special(path):
            with open(path, "wb") as stream:
                write(stream)
        else:
            _write_atomically(path, write)
    except OSError as error:  # it names the temporary file, or no file if a write to the open file failed
        if error.errno is None or error.filename == str(path):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    from tempfile import mkstemp  # slow to import, and most processes write nothing

    handle, temporary = mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent or ".")
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """True for a device, a pipe or a socket, also behind a symbolic link."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
