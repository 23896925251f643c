"""The thread pool of the process, which runs the parts of a phase at the same time."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread

import numpy as np

from irload.errors import InputInvalid
from irload.plan.backends.numpy.kernels.calls import Part


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """The number of threads: as asked for, else by IRLOAD_NUM_THREADS, else one for each processor we may use.

    Raises InputInvalid for anything but a positive integer.
    """
    asked = os.environ.get("IRLOAD_NUM_THREADS") if threads is None else threads
    if asked is None or asked == "":
        return processors()
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", str(asked)):
        raise InputInvalid(f"the number of threads must be a positive integer below 1,000,000, found '{asked}'")
    return int(asked)


def run_part(part: Part) -> None:
    """Make the calls of one part."""
    for function, arguments in part:
        function(*arguments)


class ThreadPool:
    """Threads that run parts; those that call `run`, of which there may be several at once, run parts themselves.

    Threads are started when they are first needed and kept for as long as the process lives. There are never more than
    the processors would keep busy, or than one `run` alone asks for. A caller that finds none idle runs all parts
    itself, so nobody waits for a thread that waits.
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
        hired: list[_Worker] = []
        try:
            self._hire(len(parts) - 1, hired)
            for worker, part in zip(hired, parts[1:], strict=False):
                worker.begin(part)
            run_part(parts[0])
            for part in parts[1 + len(hired) :]:
                run_part(part)
            failures = [failure for worker in hired if (failure := worker.finish()) is not None]
            with self._lock:
                self._idle += hired
        except BaseException:
            self._end(hired)
            raise
        for failure in failures:
            raise failure

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

    def begin(self, part: Part) -> None:
        """Have the part run."""
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
        with suppress(RuntimeError):  # it has been told to go, and has not yet noticed
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

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.forget)
