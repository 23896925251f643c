"""A stamp of irload's source files, taken when the first module is loaded.

The keys of cached plans and kernels contain the stamp. Modules are imported lazily, so a process whose source files
were replaced since may mix two versions and must not write to the cache.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from contextlib import suppress

__all__ = ["stamp", "unchanged"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_VERSION: str = sys.modules["irload"].__version__  # not imported: the root package imports from higher layers
_Seen = dict[str, tuple[int, ...]]


def _scan(folder: str) -> _Seen:
    """Return size, times and inode of each source file below a folder, or of the archive that contains irload."""
    states: _Seen = {}
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    states[entry.path] = _state(entry.stat())
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return states or _archive(folder)


def _archive(folder: str) -> _Seen:
    """Return the state of the archive that irload was imported from, if `folder` is inside a file."""
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        with suppress(OSError):
            status = os.stat(folder)
            return {folder: _state(status)} if stat.S_ISREG(status.st_mode) else {}
    return {}


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _record() -> bytes:
    """Return the file with hashes of all files that pip recorded; empty for a source tree."""
    with suppress(OSError), open(f"{_FOLDER}-{_VERSION}.dist-info/RECORD", "rb") as file:
        return file.read()
    return b""


_loaded = _scan(_FOLDER)
_installed = _record()
_compared: dict[tuple[str, ...], frozenset[str]] = {}
"""By subfolder: the modules in memory when its files were last compared without detecting a change."""


def stamp(*below: str) -> str:
    """Return a digest of the version and of the files at load time: all files, or one subfolder."""
    files = sorted((path, *state[:2]) for path, state in _known(below).items())
    return hashlib.sha256(repr((_VERSION, files)).encode() + _installed).hexdigest()


def unchanged(*below: str) -> bool:
    """True if every module in memory is from the files at load time: all modules, or one subfolder.

    Files are compared again only if modules were imported since the last comparison, because replacing a file later
    does not change modules in memory.
    """
    modules = frozenset(name for name in sys.modules if name.startswith("irload"))
    if _compared.get(below) != modules and _scan(os.path.join(_FOLDER, *below)) == _known(below):
        _compared[below] = modules
    return _compared.get(below) == modules


def _known(below: tuple[str, ...]) -> _Seen:
    prefix = os.path.join(_FOLDER, *below, "")
    return {path: state for path, state in _loaded.items() if path.startswith(prefix)} or _loaded
