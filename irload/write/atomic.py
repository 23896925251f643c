"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from irload.portable import replace


def write_atomically(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Have `write` fill a temporary file in the folder of `path`, force it to disk, and give it that name.

    An existing file is replaced; if `write` fails, it is left as it was. Raises OSError.
    """
    path = Path(path)
    try:
        _write_atomically(path, write)
    except OSError as error:  # of the temporary file, whose name says nothing to anybody
        if error.errno is None or error.filename in (None, str(path)):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    from tempfile import mkstemp  # which imports much, and most processes write nothing

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


def _umask() -> int:
    # The only way to read it is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
