"""File names that may not be valid UTF-8, and paths confined to a folder."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath

from irload.errors import InputInvalid

JOB_FOLDER = ".batch"
"""The folder with a job's internal files inside a folder of results."""


def shown(name: str) -> str:
    r"""The name as text that any encoding can represent: bytes that are not UTF-8 as `\xff`."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def inner(key: str) -> str:
    """A relative path below its folder and outside the job's internal files. Raises InputInvalid for any other."""
    windows = PureWindowsPath(key)
    parts = PurePosixPath(key).parts
    absolute = key.startswith("/") or (bool(windows.drive or windows.root) and os.name == "nt")
    if absolute or ".." in parts or not parts or "\0" in key:
        raise InputInvalid(f"the name '{shown(key)}' leads out of the output folder")
    if parts[0].lower() == JOB_FOLDER:
        raise InputInvalid(f"'{shown(key)}' is the name of the job's internal files in the output folder; rename it")
    return key


@lru_cache(1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def real(path: str) -> str:
    """The path with the symbolic links of its folders resolved, but not the file itself."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(_real_folder(folder), name)


def is_inside(path: str, folder: str) -> bool:
    """True for the folder and all paths below it; both resolved by `real` or `os.path.realpath`."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
