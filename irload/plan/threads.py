"""The thread pool of the process, which runs the parts of a phase at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Protocol

import numpy as np

from irload.machine import processors
from irload.portable import after_fork_in_child, keep_to, other_processors

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments; nothing is looked up later."""

Part = list[Call]
"""Calls that one thread makes one after the other."""


Job = Sequence[int]
"""A function of machine code and its arguments."""


class Mailbox(Protocol):
    """Where one thread spins for a moment for its next job, and runs it without Python's lock."""

    def serve(self) -> None:
        """Wait for jobs and run them, until none has come for a while or Python interrupts."""
        ...

    def submit(self, job: Job) -> bool:
        """Have the thread run a job; False where it does not wait for one."""
        ...

    def finish(self) -> None:
        """Wait for the end of the job that was submitted."""
        ...

    def interrupt(self, interrupted: bool) -> None:
        """Have the thread go back to Python at once, or no longer."""
        ...


class Together(Protocol):
    """Work whose parts wait for each other."""

    def jobs(self, count: int) -> Sequence[Job]:
        """What each of so many threads does."""
        ...

    def run(self, job: Job) -> None:
        """Run one of them in the calling thread."""
        ...

    def mailbox(self) -> Mailbox:
        """A mailbox for one more thread."""
        ...

    def abandon(self) -> None:
        """Have all parts come to their end, where an exception meets a thread that others may wait for."""
        ...


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

    def run_together(self, work: Together, most: int) -> None:
        """Run parts that wait for each other, as many as there are threads for, up to `most`. Raises as `run` does."""
        self._with_threads(most, lambda hired: self._work_together(hired, work), work.abandon)

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
            worker.keep_to(others)
            worker.begin(part)
        for part in (parts[0], *rest):
            run_part(part)
        return self._finish(hired)

    def _work_together(self, hired: list[_Worker], work: Together) -> list[BaseException]:
        """Run a job by the calling thread and one by each of the hired: those that wait for one need no Python."""
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
        """Wait for the hired threads, which are idle then. Gives what they raised."""
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
        self._has_job = False
        self.mailbox: Mailbox | None = None
        """Where it waits for jobs after a part, if it does."""

    def keep_to(self, processors: frozenset[int]) -> None:
        """Run on some of these processors; on any where none are named."""
        if processors and processors != self._processors and self.native_id is not None:
            keep_to(self.native_id, processors)
            self._processors = processors

    def begin(self, part: Part) -> None:
        """Have the part run."""
        self._part = part
        if self.mailbox is not None:
            self.mailbox.interrupt(True)
        self._go.release()

    def submit(self, job: Job) -> bool:
        """Have the job run, if the thread waits for one."""
        self._has_job = self.mailbox is not None and self.mailbox.submit(job)
        return self._has_job

    def finish(self) -> BaseException | None:
        """Wait for the part or the job. Returns what it raised."""
        if self._has_job and self.mailbox is not None:
            self._has_job = False
            self.mailbox.finish()
            return None
        self._done.acquire()
        failure, self._failure = self._failure, None
        return failure

    def end(self) -> None:
        """Have the thread end, with the part that it is running or without any."""
        self._ending = True
        if self.mailbox is not None:
            self.mailbox.interrupt(True)
        with suppress(RuntimeError):  # it was given a part and has not begun it yet
            self._go.release()

    def run(self) -> None:
        """What the thread does."""
        with np.errstate(all="ignore"):
            while True:
                self._go.acquire()
                if self._ending:
                    return
                if self.mailbox is not None:
                    self.mailbox.interrupt(False)
                try:
                    run_part(self._part)
                except BaseException as error:
                    self._failure = error
                self._part = []  # whose arrays may go with their plan
                self._done.release()
                if self.mailbox is not None:
                    self.mailbox.serve()


pool = ThreadPool()
"""The one pool of the process."""

after_fork_in_child(pool.forget)
