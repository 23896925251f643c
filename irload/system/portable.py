"""Differences between operating systems: positioned reads, replacing files, forks, memory, file names.

All other modules use only portable functions of Python, which tests/platforms verifies.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any

__all__ = [
    "COMMITS_LATE",
    "READ_FLAGS",
    "after_fork_in_child",
    "anonymous_pages",
    "around_fork",
    "c_library",
    "file_name",
    "give_back_memory",
    "interrupts_held",
    "keep_to",
    "other_processors",
    "physical_memory",
    "read_at",
    "replace",
    "resident_memory",
]


_ANONYMOUS: int = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
"""Flags of private anonymous memory, which Windows lacks."""
COMMITS_LATE = bool(_ANONYMOUS)
"""True if the system uses memory for anonymous pages only after the first write; Windows commits them at once."""


def anonymous_pages(size: int) -> mmap.mmap:
    """Return private memory of zeros. Raises OSError, ValueError or OverflowError if the system refuses it."""
    if sys.platform != "win32":
        return mmap.mmap(-1, size, flags=_ANONYMOUS)
    return mmap.mmap(-1, size)


def _read_flags() -> int:
    """Return the flags that exist on this system, combined.

    O_NONBLOCK prevents blocking on a FIFO. O_BINARY prevents Windows from converting line ends and stopping at ^Z.
    """
    names = ("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
    return sum({getattr(os, name, 0) for name in names})


READ_FLAGS = _read_flags()
"""Flags for opening a file of unknown type for reading."""
_PATIENCE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts to replace a file on Windows, where a virus scanner may keep it open for a moment."""
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def read_at(descriptor: int, target: memoryview, offset: int) -> int:
    """Fill `target` from the file at `offset` and return the number of bytes; fewer only at the end of the file.

    Moves the descriptor's position, so a descriptor must not be shared by threads. Raises OSError.
    """
    with FileIO(descriptor, closefd=False) as stream:  # loops, because one system call may read less
        stream.seek(offset)
        at = 0
        while at < len(target):
            count = stream.readinto(target[at:])
            if not count:
                break
            at += count
    return at


def replace(source: str | Path, target: str | Path) -> None:
    """Call `os.replace`. On Windows, where it fails while the target is open, repeat it for up to a second."""
    for pause in _PATIENCE if sys.platform == "win32" else ():
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)


def after_fork_in_child(function: Callable[[], object]) -> None:
    """Call `function` in every forked child; a no-op on systems without fork."""
    register: Any = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=function)


def around_fork(
    before: Callable[[], object], in_parent: Callable[[], object], in_child: Callable[[], object] | None = None
) -> None:
    """Call `before` before every fork, `in_parent` after it, and `in_child` (default: the same) in the child."""
    register: Any = getattr(os, "register_at_fork", None)
    if register is not None:
        register(before=before, after_in_parent=in_parent, after_in_child=in_child or in_parent)


@contextmanager
def interrupts_held() -> Generator[None]:
    """Defer SIGINT until the end of the block. Processes that are started inside the block ignore it.

    These processes inherit the mask of blocked signals, but not handlers. The kernel may deliver the signal to another
    thread; Python then still calls the handler in the main thread. So a handler is installed that only records it.
    """
    held: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    before: Any = signal.getsignal(signal.SIGINT)
    replaced = is_main and callable(before)
    if replaced:
        signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        with _blocked(signal.SIGINT):
            yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, before)
    if held:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _blocked(number: int) -> Generator[None]:
    """Block a signal for this thread and the threads and processes it starts; a no-op without signal masks."""
    mask: Any = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would unblock the signal
    before = mask(getattr(signal, "SIG_BLOCK", 0), {number})
    try:
        yield
    finally:
        mask(getattr(signal, "SIG_SETMASK", 0), before)


def other_processors() -> frozenset[int]:
    """The processors available to the calling thread except its current one; empty if unknown.

    Linux wakes a thread on the processor of its waker when both have slept for a while, even if other processors are
    idle, and migrates it milliseconds later.
    """
    allowed = getattr(os, "sched_getaffinity", None)
    return frozenset() if allowed is None else frozenset(allowed(0)) - {_processor()()}


def keep_to(thread: int, processors: frozenset[int]) -> None:
    """Restrict a thread of this process to these processors, if the system allows it."""
    keep = getattr(os, "sched_setaffinity", None)
    if keep is not None:
        with suppress(OSError):
            keep(thread, processors)


@cache
def c_library() -> ctypes.CDLL:
    """Return the C library, with errno. Cached, as each CDLL creates a class that only the garbage collector frees."""
    return ctypes.CDLL(None, use_errno=True)


@cache
def _processor() -> Callable[[], int]:
    """Return a function that returns the current processor of the calling thread, or −1 if that is unknown."""
    return getattr(c_library(), "sched_getcpu", lambda: -1)


def physical_memory() -> int | None:
    """Return the memory of this machine in bytes; None if the system does not report it."""
    if sys.platform != "win32":
        with suppress(OSError, ValueError, AttributeError):
            nbytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            return nbytes if nbytes > 0 else None
        return None
    return _windows_memory()


def resident_memory() -> int | None:
    """Return the resident memory of this process in bytes; None if the system does not report it (Linux does)."""
    if sys.platform != "win32":
        with suppress(OSError, ValueError, AttributeError, IndexError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
    return None


def give_back_memory() -> None:
    """Return freed memory from the C library (glibc) to the system, which otherwise retains some megabytes."""
    trim = None if sys.platform == "win32" else getattr(c_library(), "malloc_trim", None)
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
    """Derive from `text` a file name that every system accepts as a plain file in its folder.

    Letters, digits, `_`, `.` and `-` are kept, other characters become `_`. The name has at most 100 characters, and no
    leading or trailing dots. Device names of Windows (`nul`, `con.txt`) are prefixed with `_`. Returns `otherwise` if
    the name is empty.
    """
    name = _UNSAFE.sub("_", text)[:100].strip(".")
    if not name:
        return otherwise
    return f"_{name}" if _DEVICES.fullmatch(name) else name
