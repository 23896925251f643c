"""What differs between operating systems: reading at an offset, replacing files, forked children, memory, file names.

Everything else in irload calls only what Python has everywhere; tests/platforms holds it to that.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any

__all__ = [
    "READ_FLAGS",
    "after_fork_in_child",
    "around_fork",
    "file_name",
    "give_back_memory",
    "keep_to",
    "other_processors",
    "physical_memory",
    "read_at",
    "replace",
    "resident_memory",
]


def _read_flags() -> int:
    """O_NONBLOCK keeps a FIFO from blocking, O_BINARY keeps Windows from converting line ends and stopping at ^Z."""
    names = ("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
    return sum({getattr(os, name, 0) for name in names})


READ_FLAGS = _read_flags()
"""Flags for opening a file whose kind is not known, for reading."""
_PATIENCE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts to replace a file on Windows, where a virus scanner may keep it open for a moment."""
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def read_at(descriptor: int, target: memoryview, offset: int) -> int:
    """Fill `target` from the file at `offset` and return how many bytes there were; fewer only at the file's end.

    Moves the descriptor's position, so one descriptor is for one thread. Raises OSError.
    """
    with FileIO(descriptor, closefd=False) as stream:  # splits what one call of the system cannot take
        stream.seek(offset)
        at = 0
        while at < len(target):
            count = stream.readinto(target[at:])
            if not count:
                break
            at += count
    return at


def replace(source: str | Path, target: str | Path) -> None:
    """`os.replace`, tried again for a second on Windows, which refuses while the target is open."""
    for pause in _PATIENCE if sys.platform == "win32" else ():
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)


def after_fork_in_child(function: Callable[[], object]) -> None:
    """Have `function` called in every forked child; nothing where there are none."""
    register: Any = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=function)


def around_fork(
    before: Callable[[], object], in_parent: Callable[[], object], in_child: Callable[[], object] | None = None
) -> None:
    """Have `before` called before every fork, `in_parent` after it, and `in_child`, or the same, in the child."""
    register: Any = getattr(os, "register_at_fork", None)
    if register is not None:
        register(before=before, after_in_parent=in_parent, after_in_child=in_child or in_parent)


def other_processors() -> frozenset[int]:
    """The processors that the calling thread may use, without the one that it runs on; none where nobody says.

    Linux wakes a thread on the processor of the one that wakes it when both have slept for a while, even where others
    are idle, and moves it milliseconds later.
    """
    allowed = getattr(os, "sched_getaffinity", None)
    return frozenset() if allowed is None else frozenset(allowed(0)) - {_processor()()}


def keep_to(thread: int, processors: frozenset[int]) -> None:
    """Have a thread of this process run on these processors alone, as far as the system lets it."""
    keep = getattr(os, "sched_setaffinity", None)
    if keep is not None:
        with suppress(OSError):
            keep(thread, processors)


@cache
def _processor() -> Callable[[], int]:
    """Tells the processor that the calling thread runs on."""
    return getattr(ctypes.CDLL(None), "sched_getcpu", lambda: -1)


def physical_memory() -> int | None:
    """The bytes of memory of this machine; None where the system does not report it."""
    if sys.platform == "win32":
        return _windows_memory()
    with suppress(OSError, ValueError, AttributeError):
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return found if found > 0 else None
    return None


def resident_memory() -> int | None:
    """The bytes of memory that this process holds now; None where the system does not report it (Linux does)."""
    if sys.platform == "win32":
        return None
    with suppress(OSError, ValueError, AttributeError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None


def give_back_memory() -> None:
    """Have the C library give what was freed back to the system, where it would keep some megabytes of it (glibc)."""
    trim = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = [
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total_physical", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 6),
    ]


def _windows_memory() -> int | None:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    windll: Any = getattr(ctypes, "windll", None)
    with suppress(OSError, AttributeError):
        if windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return int(status.total_physical)
    return None


def file_name(text: str, otherwise: str) -> str:
    """A name for a file, made of `text`, that every system takes as that of a plain file in the folder it is put in.

    Letters, digits, `_`, `.` and `-` stay; no leading or trailing dots, at most 100 characters, and no device of
    Windows (`nul`, `con.txt`), which gets a `_` in front. `otherwise` where nothing remains.
    """
    name = _UNSAFE.sub("_", text)[:100].strip(".")
    if not name:
        return otherwise
    return f"_{name}" if _DEVICES.fullmatch(name) else name
