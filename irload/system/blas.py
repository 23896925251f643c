"""Limits BLAS to one thread: in plans, whose threads share the work of each step, and in models of one thread."""

from __future__ import annotations

from functools import cache, cached_property
from threading import Lock, get_ident
from types import TracebackType
from typing import Any

from irload.system.forks import unforked
from irload.system.machine import AVX512
from irload.system.portable import after_fork_in_child


class SingleThreaded:
    """A context in which BLAS uses one thread.

    The number of BLAS threads is global to the process: the first thread to enter sets it and the last one to leave
    restores it. A fork waits until all other threads have left, because a lock of BLAS that another thread holds would
    stay locked in the child.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside: list[int] = []
        """The identifiers of the threads inside, once per entry."""
        self._before: list[int] = []

    @cached_property
    def libraries(self) -> list[Any]:
        """The BLAS libraries of the process, from threadpoolctl."""
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)

    def __enter__(self) -> None:
        unforked.__enter__()
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
        unforked.__exit__()

    def after_fork_in_child(self) -> None:
        """Remove all threads except the calling one, which is the only thread of a forked child."""
        self._lock = Lock()
        others = len(self._inside)
        self._inside = [ident for ident in self._inside if ident == get_ident()]
        if others and not self._inside:
            self._set(self._before)

    def _set(self, counts: list[int]) -> None:
        for library, before, count in zip(self.libraries, self._before, counts, strict=True):
            if before != 1:
                library.set_num_threads(count)


single_threaded_blas = SingleThreaded()

after_fork_in_child(single_threaded_blas.after_fork_in_child)


@cache
def small_kernels() -> bool:
    """True if BLAS reads the operands of small products in place, as OpenBLAS does on processors with AVX-512.

    Otherwise BLAS packs its operands at each call, so that small products are slow.
    """
    libraries = single_threaded_blas.libraries
    return bool(libraries) and all(getattr(one, "architecture", None) in AVX512 for one in libraries)
