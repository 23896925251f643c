"""The thread pool of the process, which runs the parts of a phase at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

import numpy as np

from irload.machine import processors
from irload.portable import after_fork_in_child, keep_to, other_processors

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments; nothing is looked up later."""

Part = list[Call]
"""Calls that one thread makes one after the other."""


def run_part(part: Part) -> None:
    """Make the calls of one part."""
    for function, arguments in part:
        function(*arguments)


class ThreadPool:
    """Threads that run parts; those that call `run`, of which there may be several at once, run parts themselves.

    Threads are started when they are first needed and kept for as long as the process lives. There are never more than
    the processors would keep busy, or than one `run` alone asks for. A caller that finds none idle runs all parts
    itself, so no thread waits for one that waits.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Have no threads: those of a parent process do not exist in its forked child."""
        self._lock = Lock()
        self._threads: list[_Worker] = []
        self._idle: list[_Worker] = []

    def __len__(self) -> int:
        return len(self._threads)

    def run(self, parts: Sequence[Part]) -> None:
        """Run the parts and wait for all of them; the first by the calling thread.

        Raises what one of them raised. When an exception leaves, KeyboardInterrupt included, no part is still running.
        """

        def work(hired: list[_Worker]) -> list[BaseException]:
            together = 1 + len(hired)
            return self._work(hired, parts[:together], parts[together:])

        self._with_threads(len(parts), work)

    def run_together(self, parts: Callable[[int], Sequence[Part]], most: int, abandon: Callable[[], None]) -> None:
        """Run parts that wait for each other: `parts` makes as many as there are threads for, up to `most`.

        Raises as `run` does. `abandon` is called where an exception meets the calling thread, which some may wait for:
        it must have all parts come to their end.
        """
        self._with_threads(most, lambda hired: self._work(hired, parts(1 + len(hired)), ()), abandon)

    def _with_threads(
        self,
        most: int,
        work: Callable[[list[_Worker]], list[BaseException]],
        abandon: Callable[[], None] = lambda: None,
    ) -> None:
        """Do the work with up to `most` threads, the calling one among them, and raise the first failure it gives."""
        hired: list[_Worker] = []
        try:
            self._hire(most - 1, hired)
            failures = work(hired)
        except BaseException:
            abandon()
            self._end(hired)
            raise
        for failure in failures:
            raise failure

    def _work(self, hired: list[_Worker], parts: Sequence[Part], rest: Sequence[Part]) -> list[BaseException]:
        """Run a part by the calling thread and one by each of the hired, then the rest. Gives what they raised."""
        others = other_processors() if hired else frozenset[int]()
        for worker, part in zip(hired, parts[1:], strict=True):
            worker.begin(part, others)
        for part in (parts[0], *rest):
            run_part(part)
        failures = [failure for worker in hired if (failure := worker.finish()) is not None]
        with self._lock:
            self._idle += hired
        return failures

    def _hire(self, count: int, hired: list[_Worker]) -> None:
        """Add up to `count` idle or new threads to `hired`: at no moment is a thread in no list at all."""
        with self._lock:
            first = max(len(self._idle) - count, 0)
            hired += self._idle[first:]
            del self._idle[first:]
            while len(hired) < count and len(self._threads) < max(count, processors() - 1):
                worker = _Worker()
                try:
                    worker.start()
                except RuntimeError:  # the system gives no more threads, or the interpreter is about to end
                    return
                hired.append(worker)
                self._threads.append(worker)

    def _end(self, hired: Sequence[_Worker]) -> None:
        """End threads in whatever state they are: what each is running is completed first, nothing else begun."""
        gone = set(hired)
        with self._lock:
            self._threads = [worker for worker in self._threads if worker not in gone]
            self._idle = [worker for worker in self._idle if worker not in gone]
        for worker in hired:
            worker.end()
        for worker in hired:
            while worker.is_alive():
                with suppress(KeyboardInterrupt):  # one is on its way already
                    worker.join()


class _Worker(Thread):
    """A thread that waits for parts. A lock for each direction is the cheapest barrier that Python has."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="irload")
        self._go, self._done = Lock(), Lock()
        self._go.acquire()
        self._done.acquire()
        self._ending = False
        self._part: Part = []
        self._failure: BaseException | None = None
        self._processors: frozenset[int] = frozenset()

    def begin(self, part: Part, processors: frozenset[int]) -> None:
        """Have the part run on some of these processors; on any where none are named."""
        if processors and processors != self._processors and self.native_id is not None:
            keep_to(self.native_id, processors)
            self._processors = processors
        self._part = part
        self._go.release()

    def finish(self) -> BaseException | None:
        """Wait for the part. Returns what it raised."""
        self._done.acquire()
        failure, self._failure = self._failure, None
        return failure

    def end(self) -> None:
        """Have the thread end, with the part that it is running or without any."""
        self._ending = True
        with suppress(RuntimeError):  # it was given a part and has not begun it yet
            self._go.release()

    def run(self) -> None:
        """What the thread does."""
        with np.errstate(all="ignore"):
            while True:
                self._go.acquire()
                if self._ending:
                    return
                try:
                    run_part(self._part)
                except BaseException as error:
                    self._failure = error
                self._part = []  # whose arrays may go with their plan
                self._done.release()


pool = ThreadPool()
"""The one pool of the process."""

after_fork_in_child(pool.forget)
