"""Names of files that need not be text, and paths that must not leave a folder."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath

from irload.errors import InputInvalid

JOB_FOLDER = ".batch"
"""The folder of a job's own files inside a folder of results."""


def shown(name: str) -> str:
    r"""The name as text that any encoding holds: bytes that are no UTF-8 as `\xff`."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def inner(key: str) -> str:
    """A relative path that stays below its folder and out of the job's own. Raises InputInvalid for any other."""
    windows = PureWindowsPath(key)
    parts = PurePosixPath(key).parts
    absolute = key.startswith("/") or (bool(windows.drive or windows.root) and os.name == "nt")
    if absolute or ".." in parts or not parts or "\0" in key:
        raise InputInvalid(f"the name '{shown(key)}' leads out of the output folder")
    if parts[0].lower() == JOB_FOLDER:
        raise InputInvalid(f"'{shown(key)}' is a name of the job's own files in the output folder; rename it")
    return key


@lru_cache(1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def real(path: str) -> str:
    """The path with the links of its folders resolved, not that of the file itself."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(_real_folder(folder), name)


def is_inside(path: str, folder: str) -> bool:
    """True for the folder and what is below it, both as `real` or `os.path.realpath` give them."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
