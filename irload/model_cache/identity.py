"""What a kept plan depends on: the files, how they are compiled, the machine, and irload as it is now."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

import irload
from irload.core.registry import table
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.compiler import llvmlite_version
from irload.plan.backends.llvm.target import Target

SETTLED = 2_000_000_000
"""Nanoseconds since its last change from which a file is kept a plan of: clocks of file systems tick in seconds."""


def identity_of(path: Path, options: Options, target: Target) -> str | None:
    """One name for all of it, None where a file is not there, is no file, or was changed just now.

    The XML is known by its digest; the weights, which may be large, by place, size and times, as Git knows its files.
    """
    beside = path.with_suffix(".bin")
    try:
        model = os.stat(path)
        weights = os.stat(beside) if beside.exists() else None
        found = [s for s in (model, weights) if s is not None]
        if not all(stat.S_ISREG(s.st_mode) for s in found) or model.st_size > options.limits.xml_bytes:
            return None
        content = path.read_bytes()
    except (OSError, ValueError):  # reading says what is wrong with it
        return None
    if max(max(s.st_mtime_ns, s.st_ctime_ns) for s in found) > time.time_ns() - SETTLED:
        return None
    known = (
        *(str(path), options.file, hashlib.sha256(content).hexdigest(), _seen(weights)),
        *(options.threads, options.precise, options.precision, repr(options.limits), repr(target)),
        *(sys.version, np.__version__, ml_dtypes.__version__, llvmlite_version(), _sources()),
    )
    return hashlib.sha256(repr(known).encode()).hexdigest()[:40]


def is_plain() -> bool:
    """True where all operations are irload's own."""
    return all(cls.__module__.startswith("irload.") for versions in table.values() for cls in versions)


def _seen(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@cache
def _sources() -> str:
    """The state of irload: its version and its own files, of which there are none to be seen in an archive."""
    found: list[tuple[str, int, int]] = []
    folders = [os.path.dirname(irload.__file__)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append((entry.path, status.st_size, status.st_mtime_ns))
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return hashlib.sha256(repr((irload.__version__, sorted(found))).encode()).hexdigest()
