"""Compiles kernels in several threads."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType

from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target

MOST_THREADS = 8
"""More threads wait for each other: a kernel takes the GIL, to generate its text, for an eighth of its time."""


class CompileQueue:
    """Compiles kernels while others are selected. A context: at its end, kernels that no thread has begun are dropped.

    `codes`: receives the code of each kernel; `threads`: the number of threads that compile, one of which is the caller
    in `complete`. A kernel that cannot be compiled is missing in `codes`.
    """

    def __init__(self, codes: dict[Kernel, Code], target: Target, threads: int) -> None:
        self._codes = codes
        self._target = target
        self._helpers = min(threads, MOST_THREADS) - 1
        self._added: set[Kernel] = set()
        self._queue: SimpleQueue[Kernel | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def __enter__(self) -> CompileQueue:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._helpers = 0
        while self._next() is not None:
            pass
        for _thread in self._threads:
            self._queue.put(None)

    def add(self, kernel: Kernel) -> None:
        """Load a kernel from the cache, or compile it in another thread. A no-op after the context."""
        if self._helpers == 0 or kernel in self._added or kernel in self._codes:
            return
        self._added.add(kernel)
        code = library.found(kernel, self._target)
        if code is not None:
            self._codes[kernel] = code
            return
        self._queue.put(kernel)
        if len(self._threads) < self._helpers:
            thread = Thread(target=self._help, name="irload-compile")
            with suppress(RuntimeError):  # no more threads: the caller compiles more kernels
                thread.start()
                self._threads.append(thread)

    def complete(self) -> None:
        """Compile the kernels that no thread has begun. Other threads may still be compiling when it returns."""
        while (kernel := self._next()) is not None:
            self._codes[kernel] = library.code(kernel, self._target)

    def _next(self) -> Kernel | None:
        with suppress(Empty):
            return self._queue.get_nowait()
        return None

    def _help(self) -> None:
        while (kernel := self._queue.get()) is not None:
            with suppress(Exception):  # raised again when the caller looks the code up
                self._codes[kernel] = library.code(kernel, self._target)
