"""The thread pool of the process, which runs parts of the work of a plan in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Protocol

import numpy as np

from irload.record import record
from irload.system.machine import processors
from irload.system.portable import after_fork_in_child, keep_to, other_processors

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments."""

ThreadCalls = list[Call]
"""Calls that one thread makes sequentially."""


class Team(Protocol):
    """Threads that share memory: a leader, which assigns work, and helpers, which run compiled code without the GIL.

    `threads`: the maximum number of threads, including the leader.
    """

    threads: int

    def help(self, number: int) -> None:
        """Help the leader as thread `number` ≥ 1 until `dismiss`. Waiting threads spin briefly, then sleep."""
        ...

    def dismiss(self) -> None:
        """Make all helpers return to Python permanently. Must not be called while a thread leads."""
        ...


class Together(Protocol):
    """Work that the threads of a team share."""

    def team(self, threads: int) -> Team:
        """Create a team."""
        ...

    def run(self, team: Any, threads: int) -> None:
        """Run the work in the calling thread, which leads the first `threads` threads of a team."""
        ...


def run_part(part: ThreadCalls) -> None:
    """Make the calls of one part."""
    for function, arguments in part:
        function(*arguments)


class ThreadPool:
    """Threads that run parts. Several threads may call `run` concurrently; each caller also runs parts.

    Threads are started on first use and kept until the process ends: at most `processors() - 1`, or the number that
    one `run` needs. If no thread is available, the caller runs all parts, so there are no circular waits.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the list of threads: a forked child does not have the threads of its parent."""
        self._lock = Lock()
        self._threads: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._free: list[_Crew] = []
        """Teams without a leader."""

    def __len__(self) -> int:
        return len(self._threads)

    def run(self, parts: Sequence[ThreadCalls]) -> None:
        """Run the parts and wait for all of them; the calling thread runs the first.

        If parts raise exceptions, raises one of them. No part is still running when an exception, including
        KeyboardInterrupt, leaves this method.
        """
        hired: list[_Worker] = []
        try:
            self._hire(len(parts) - 1, hired)
            together = 1 + len(hired)
            failures = self._work(hired, parts[:together], parts[together:])
        except BaseException:
            self._end(hired)
            raise
        for failure in failures:
            raise failure

    def run_together(self, work: Together, most: int) -> None:
        """Run work in a team of up to `most` threads, which the calling thread leads. Helpers then stay in the team."""
        hired: list[_Worker] = []
        try:
            crew = self._crew(work, most, hired)
            others = other_processors() if hired else frozenset[int]()
            for worker in hired[: most - 1]:
                worker.keep_to(others)
            work.run(crew.team, min(most, 1 + len(hired)))
            with self._lock:
                self._free.append(crew)
        except BaseException:
            self._end(hired)
            raise

    def _crew(self, work: Together, most: int, hired: list[_Worker]) -> _Crew:
        """Return a team that no thread leads, if possible with `most` − 1 helpers, which are also added to `hired`."""
        crew: _Crew | None = None
        with self._lock:
            if self._free:
                crew = max(self._free, key=lambda free: len(free.helpers))
                self._free.remove(crew)
                hired += crew.helpers
        if crew is not None and crew.team.threads < most:
            self._dismiss(crew)
            with self._lock:
                self._idle += crew.helpers
            hired.clear()
            crew = None
        if crew is None:
            crew = _Crew(work.team(max(most, processors())), [])
        if len(hired) < most - 1:
            self._hire(most - 1, hired)
            for worker in hired[len(crew.helpers) :]:
                crew.helpers.append(worker)
                worker.help(crew.team, len(crew.helpers))
        return crew

    def _work(
        self, hired: list[_Worker], parts: Sequence[ThreadCalls], rest: Sequence[ThreadCalls]
    ) -> list[BaseException]:
        """Run the first part and `rest` in the calling thread, the other parts in `hired`. Returns the exceptions."""
        others = other_processors() if hired else frozenset[int]()
        for worker, part in zip(hired, parts[1:], strict=True):
            worker.keep_to(others)
            worker.begin(part)
        for part in (parts[0], *rest):
            run_part(part)
        failures = [failure for worker in hired if (failure := worker.finish()) is not None]
        with self._lock:
            self._idle += hired
        return failures

    def _hire(self, count: int, hired: list[_Worker]) -> None:
        """Extend `hired` to `count` threads if possible: idle ones, helpers of teams without a leader, or new ones.

        At any time, each thread is in a list: of idle threads, of the helpers of a team, or of threads `hired` by a
        caller.
        """
        crews: list[_Crew] = []
        with self._lock:
            first = max(len(self._idle) - (count - len(hired)), 0)
            hired += self._idle[first:]
            del self._idle[first:]
            while self._free and len(hired) < count:
                crews.append(self._free.pop())
                hired += crews[-1].helpers
        for crew in crews:
            self._dismiss(crew)
        with self._lock:
            self._idle += hired[count:]
            del hired[count:]
            while len(hired) < count and len(self._threads) < max(count, processors() - 1):
                worker = _Worker()
                try:
                    worker.start()
                except RuntimeError:  # the system cannot start more threads, or the interpreter is shutting down
                    return
                hired.append(worker)
                self._threads.append(worker)

    @staticmethod
    def _dismiss(crew: _Crew) -> None:
        """Wait until all helpers of a team have returned to Python."""
        if crew.helpers:
            crew.team.dismiss()
        for worker in crew.helpers:
            worker.finish()

    def _end(self, hired: Sequence[_Worker]) -> None:
        """End threads in any state: each completes its current call and starts no other."""
        gone = set(hired)
        with self._lock:
            self._threads = [worker for worker in self._threads if worker not in gone]
            self._idle = [worker for worker in self._idle if worker not in gone]
            self._free = [crew for crew in self._free if not gone.intersection(crew.helpers)]
        for worker in hired:
            worker.end()
        for worker in hired:
            while worker.is_alive():
                with suppress(KeyboardInterrupt):  # the thread is already ending
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
        self._team: Team | None = None

    def keep_to(self, processors: frozenset[int]) -> None:
        """Restrict the thread to some of these processors; to any if the set is empty."""
        if processors and processors != self._processors and self.native_id is not None:
            keep_to(self.native_id, processors)
            self._processors = processors

    def begin(self, part: ThreadCalls) -> None:
        """Start a part."""
        self._part = part
        self._go.release()

    def help(self, team: Team, number: int) -> None:
        """Become a helper of a team, until `dismiss` of the team."""
        self._team = team
        self.begin([(team.help, (number,))])

    def finish(self) -> BaseException | None:
        """Wait for the part. Returns its exception."""
        self._done.acquire()
        self._team = None
        failure, self._failure = self._failure, None
        return failure

    def end(self) -> None:
        """End the thread after its current call."""
        self._ending = True
        if self._team is not None:
            self._team.dismiss()
        with suppress(RuntimeError):  # the lock is already released: a part was assigned, but has not started
            self._go.release()

    def run(self) -> None:
        """Run parts until `end` is called."""
        with np.errstate(all="ignore"):
            while True:
                self._go.acquire()
                if self._ending:
                    return
                self._run_part()
                self._done.release()

    def _run_part(self) -> None:
        """Make the calls of the part.

        No reference to a call remains while the thread waits: calls refer to the memory of a plan that may be deleted.
        """
        calls, self._part = self._part, []
        try:
            for function, arguments in calls:
                if self._ending:  # the `run` that hired this thread failed or was interrupted
                    break
                function(*arguments)
        except BaseException as error:
            self._failure = error


@record(eq=False)
class _Crew:
    """A team and its helpers, which have the numbers 1, 2 and so on."""

    team: Team
    helpers: list[_Worker]


pool = ThreadPool()
"""The one pool of the process."""

after_fork_in_child(pool.forget)
