"""The thread pool of the process, which runs the parts of a phase in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Protocol

import numpy as np

from irload.system.machine import processors
from irload.system.portable import after_fork_in_child, keep_to, other_processors

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments; no names are resolved at run time."""

ThreadCalls = list[Call]
"""Calls that one thread makes sequentially."""


NativeCall = Sequence[int]
"""A function of machine code and its arguments."""


class Mailbox(Protocol):
    """The mailbox of one thread, which spins briefly for its next job and runs it without the GIL."""

    def serve(self) -> None:
        """Wait for jobs and run them; return when none has arrived for a while or Python interrupts."""
        ...

    def submit(self, job: NativeCall) -> bool:
        """Submit a job; False if the thread is not waiting for one."""
        ...

    def finish(self) -> None:
        """Wait for the end of the submitted job."""
        ...

    def interrupt(self, interrupted: bool) -> None:
        """Set or clear the flag that returns the thread to Python."""
        ...


class Together(Protocol):
    """Work whose parts wait for each other at barriers."""

    def jobs(self, count: int) -> Sequence[NativeCall]:
        """The jobs of `count` threads."""
        ...

    def run(self, job: NativeCall) -> None:
        """Run one of the jobs in the calling thread."""
        ...

    def mailbox(self) -> Mailbox:
        """A new mailbox for one more thread."""
        ...

    def abandon(self) -> None:
        """On an exception, release all barriers, so that every part ends and no thread blocks."""
        ...


def run_part(part: ThreadCalls) -> None:
    """Make the calls of one part."""
    for function, arguments in part:
        function(*arguments)


class ThreadPool:
    """Threads that run parts. Several threads may call `run` concurrently; each also runs parts itself.

    Threads are started on first use and kept until the process ends: at most `processors() - 1`, or as many as
    one `run` needs. A caller for which no thread is idle runs all parts itself, so waits are never circular.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the list of threads: a forked child does not have the threads of its parent."""
        self._lock = Lock()
        self._threads: list[_Worker] = []
        self._idle: list[_Worker] = []

    def __len__(self) -> int:
        return len(self._threads)

    def run(self, parts: Sequence[ThreadCalls]) -> None:
        """Run the parts and wait for all of them; the calling thread runs the first.

        Raises an exception of one of them. When an exception leaves, KeyboardInterrupt included, no part is still
        running.
        """

        def work(hired: list[_Worker]) -> list[BaseException]:
            together = 1 + len(hired)
            return self._work(hired, parts[:together], parts[together:])

        self._with_threads(len(parts), work)

    def run_together(self, work: Together, most: int) -> None:
        """Run parts that wait for each other, one per available thread, up to `most`. Raises as `run` does."""
        self._with_threads(most, lambda hired: self._work_together(hired, work), work.abandon)

    def _with_threads(
        self,
        most: int,
        work: Callable[[list[_Worker]], list[BaseException]],
        abandon: Callable[[], None] = lambda: None,
    ) -> None:
        """Do the work with up to `most` threads including the calling one, and raise its first exception."""
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

    def _work(
        self, hired: list[_Worker], parts: Sequence[ThreadCalls], rest: Sequence[ThreadCalls]
    ) -> list[BaseException]:
        """Run a part by the calling thread and one by each of the hired, then the rest. Returns the exceptions."""
        others = other_processors() if hired else frozenset[int]()
        for worker, part in zip(hired, parts[1:], strict=True):
            worker.keep_to(others)
            worker.begin(part)
        for part in (parts[0], *rest):
            run_part(part)
        return self._finish(hired)

    def _work_together(self, hired: list[_Worker], work: Together) -> list[BaseException]:
        """Run a job by the calling thread and one by each of the hired; threads in a mailbox run it without the GIL."""
        jobs = work.jobs(1 + len(hired))
        others = other_processors() if hired else frozenset[int]()
        for worker, job in zip(hired, jobs[1:], strict=True):
            worker.keep_to(others)
            if not worker.submit(job):
                worker.mailbox = worker.mailbox or work.mailbox()
                worker.begin([(work.run, (job,))])
        work.run(jobs[0])
        return self._finish(hired)

    def _finish(self, hired: list[_Worker]) -> list[BaseException]:
        """Wait until the hired threads are idle. Returns their exceptions."""
        failures = [failure for worker in hired if (failure := worker.finish()) is not None]
        with self._lock:
            self._idle += hired
        return failures

    def _hire(self, count: int, hired: list[_Worker]) -> None:
        """Add up to `count` idle or new threads to `hired`: every thread is always in one of the lists."""
        with self._lock:
            first = max(len(self._idle) - count, 0)
            hired += self._idle[first:]
            del self._idle[first:]
            while len(hired) < count and len(self._threads) < max(count, processors() - 1):
                worker = _Worker()
                try:
                    worker.start()
                except RuntimeError:  # the system cannot start more threads, or the interpreter is shutting down
                    return
                hired.append(worker)
                self._threads.append(worker)

    def _end(self, hired: Sequence[_Worker]) -> None:
        """End threads in any state: each completes its current call and starts no other."""
        gone = set(hired)
        with self._lock:
            self._threads = [worker for worker in self._threads if worker not in gone]
            self._idle = [worker for worker in self._idle if worker not in gone]
        for worker in hired:
            worker.end()
        for worker in hired:
            while worker.is_alive():
                with suppress(KeyboardInterrupt):  # it is ending already
                    worker.join()


class _Worker(Thread):
    """A thread that waits for parts. One lock per direction is the fastest barrier in Python."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="irload")
        self._go, self._done = Lock(), Lock()
        self._go.acquire()
        self._done.acquire()
        self._ending = False
        self._part: ThreadCalls = []
        self._failure: BaseException | None = None
        self._processors: frozenset[int] = frozenset()
        self._has_job = False
        self.mailbox: Mailbox | None = None
        """The mailbox in which it waits for jobs after a part, if any."""

    def keep_to(self, processors: frozenset[int]) -> None:
        """Restrict the thread to some of these processors; to any if the set is empty."""
        if processors and processors != self._processors and self.native_id is not None:
            keep_to(self.native_id, processors)
            self._processors = processors

    def begin(self, part: ThreadCalls) -> None:
        """Start the part."""
        self._part = part
        if self.mailbox is not None:
            self.mailbox.interrupt(True)
        self._go.release()

    def submit(self, job: NativeCall) -> bool:
        """Submit the job; False if the thread is not waiting in its mailbox."""
        self._has_job = self.mailbox is not None and self.mailbox.submit(job)
        return self._has_job

    def finish(self) -> BaseException | None:
        """Wait for the part or the job. Returns its exception."""
        if self._has_job and self.mailbox is not None:
            self._has_job = False
            self.mailbox.finish()
            return None
        self._done.acquire()
        failure, self._failure = self._failure, None
        return failure

    def end(self) -> None:
        """End the thread after its current call."""
        self._ending = True
        if self.mailbox is not None:
            self.mailbox.interrupt(True)
        with suppress(RuntimeError):  # its part was assigned but has not started
            self._go.release()

    def run(self) -> None:
        """The loop of the thread."""
        with np.errstate(all="ignore"):
            while True:
                self._go.acquire()
                if self._ending:
                    return
                if self.mailbox is not None:
                    self.mailbox.interrupt(False)
                self._run_part()
                self._done.release()
                if self.mailbox is not None:
                    self.mailbox.serve()

    def _run_part(self) -> None:
        """Make the calls of the part.

        No reference to a call remains while the thread waits: calls refer to the memory of a plan that may be deleted.
        """
        calls, self._part = self._part, []
        try:
            for function, arguments in calls:
                if self._ending:  # the phase that hired it failed or was interrupted
                    break
                function(*arguments)
        except BaseException as error:
            self._failure = error


pool = ThreadPool()
"""The one pool of the process."""

after_fork_in_child(pool.forget)
