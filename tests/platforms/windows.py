"""A pytest plugin that removes the features that Windows lacks: `pytest -p tests.platforms.windows`.

It removes names that Python has on Unix only, unless the standard library needs them to run here; new processes are
spawned; O_BINARY exists, and a file opened without it is read as text.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

UNIX_ONLY: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in tomllib.loads(Path(__file__).with_name("unix_only.toml").read_text("utf-8")).items()
}
O_BINARY = 1 << 29
"""A bit that Linux and macOS do not use; the wrapped `open` clears it."""

_NEEDED = {
    # used by subprocess, multiprocessing, tempfile, shutil, pytest and xdist, which have other branches on Windows
    *("getuid", "geteuid", "getgid", "getegid", "uname", "killpg", "setsid", "chown", "O_DIRECTORY", "O_NOFOLLOW"),
    "sysconf",  # used by joblib, a dependency of scikit-learn
    *("WNOHANG", "WIFSTOPPED", "WSTOPSIG", "WIFSIGNALED", "WTERMSIG", "WIFEXITED", "WEXITSTATUS"),
}


def pytest_configure() -> None:
    """Before any test is collected, so before irload is imported."""
    multiprocessing.set_start_method("spawn", force=True)
    for way in ("_USE_CP_SENDFILE", "_use_fd_functions"):  # how shutil copies and removes
        setattr(shutil, way, False)
    for name in UNIX_ONLY["os"] - _NEEDED:
        if hasattr(os, name):
            delattr(os, name)
    for module in UNIX_ONLY["modules"] - {"posix"}:
        sys.modules[module] = None
    if hasattr(os, "process_cpu_count"):  # counts by sched_getaffinity here, differently on Windows
        os.process_cpu_count = os.cpu_count
    inner = os.open

    def opened(path: Any, flags: int, *others: Any, **named: Any) -> int:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        assert flags & O_BINARY or not caller.startswith(("irload.", "irrun.")), f"{caller} opens {path} as text"
        return inner(path, flags & ~O_BINARY, *others, **named)

    os.open = opened
    os.O_BINARY = O_BINARY
