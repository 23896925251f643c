"""Sections of code during which other threads must not fork.

A forked child has only the forking thread. State of the other threads never changes in the child: a lock of an import,
of LLVM or of BLAS that another thread held is never released, and a disabled garbage collector stays off.
"""

from __future__ import annotations

from contextlib import ContextDecorator, suppress
from threading import Condition, Lock, get_ident
from time import monotonic

from irload.system.portable import around_fork

PATIENCE = 30
"""Maximum seconds that a fork waits: the forking thread might hold a lock that the other threads wait for."""


class Unforked(ContextDecorator):
    """A context or decorator. A fork waits until all other threads have left it.

    A thread may enter it several times, and may fork inside it. Ctrl-C at any moment releases the lock: entering a Lock
    is one instruction, entering a Condition is not.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._forking: list[int] = []
        """The identifiers of the threads that are about to fork."""
        self._inside: list[int] = []
        """The identifiers of the threads inside, once per entry."""

    def __enter__(self) -> None:
        ident = get_ident()
        before = self._inside.count(ident)
        try:
            with self._lock:
                while self._forking and ident not in self._inside:
                    self._changed.wait()
                self._inside.append(ident)
        except BaseException:  # Ctrl-C
            with self._lock:
                if self._inside.count(ident) > before:
                    self._inside.remove(ident)
            raise

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside.remove(get_ident())
            if self._forking:
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Block further entries, and wait for other threads inside. This thread holds the lock during the fork."""
        self._lock.acquire()
        self._forking.append(get_ident())
        end = monotonic() + PATIENCE
        while any(ident != get_ident() for ident in self._inside) and (left := end - monotonic()) > 0:
            self._changed.wait(left)

    def after_fork_in_parent(self) -> None:
        """Allow entries again."""
        if get_ident() not in self._forking:
            return  # the hooks were registered during the fork, after `before_fork` would have run
        self._forking.remove(get_ident())
        self._changed.notify_all()
        with suppress(RuntimeError):  # Ctrl-C interrupted the wait
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Remove all threads except the calling one."""
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._forking = []
        self._inside = [ident for ident in self._inside if ident == get_ident()]


unforked = Unforked()
"""The instance of this process."""

around_fork(unforked.before_fork, unforked.after_fork_in_parent, unforked.after_fork_in_child)
