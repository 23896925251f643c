"""BLAS at one thread while plans run: their own threads share the work of each step."""

from __future__ import annotations

from functools import cache, cached_property
from threading import Event, Lock, get_ident
from time import monotonic, sleep
from types import TracebackType
from typing import Any

from irload.machine import AVX512
from irload.portable import around_fork

PATIENCE = 10.0
"""Seconds for which a fork waits for threads in BLAS."""


class SingleThreaded:
    """A context in which BLAS uses one thread.

    The number is one of the whole process, so the first to enter sets it and the last to leave puts it back. A fork
    waits until all other threads have left, as BLAS has locks that its child could never get.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open = Event()
        """Not set while a fork is under way."""
        self._open.set()
        self._inside: list[int] = []
        """The threads that are inside, as often as they have entered."""
        self._before: list[int] = []

    @cached_property
    def libraries(self) -> list[Any]:
        """The BLAS libraries of the process, as threadpoolctl lists them."""
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)

    def __enter__(self) -> None:
        if not self._open.is_set() and get_ident() not in self._inside:
            self._open.wait(PATIENCE)
        with self._lock:
            if not self._inside:
                self._before = [library.get_num_threads() for library in self.libraries]
                self._set([1] * len(self._before))
            self._inside.append(get_ident())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside.remove(get_ident())
            if not self._inside:
                self._set(self._before)

    def before_fork(self) -> None:
        """Let no more threads in, and wait for those that are inside."""
        self._open.clear()
        end = monotonic() + PATIENCE
        while any(ident != get_ident() for ident in self._inside) and monotonic() < end:
            sleep(0.0005)

    def after_fork_in_parent(self) -> None:
        """Let threads in again."""
        self._open.set()

    def after_fork_in_child(self) -> None:
        """Leave nothing inside but the calling thread, the only one that a forked child has."""
        self._lock, self._open = Lock(), Event()
        self._open.set()
        others = len(self._inside)
        self._inside = [ident for ident in self._inside if ident == get_ident()]
        if others and not self._inside:
            self._set(self._before)

    def _set(self, counts: list[int]) -> None:
        for library, before, count in zip(self.libraries, self._before, counts, strict=True):
            if before != 1:
                library.set_num_threads(count)


single_threaded_blas = SingleThreaded()

around_fork(
    single_threaded_blas.before_fork,
    single_threaded_blas.after_fork_in_parent,
    single_threaded_blas.after_fork_in_child,
)


@cache
def small_kernels() -> bool:
    """True where BLAS multiplies small matrices where they lie, as OpenBLAS does on processors with AVX-512.

    Everywhere else it copies its operands at each call, so that small products are slow ones.
    """
    libraries = single_threaded_blas.libraries
    return bool(libraries) and all(getattr(one, "architecture", None) in AVX512 for one in libraries)
