"""Worker threads that run the parts of a phase at the same time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from threading import Lock, Thread

import numpy as np

from irload.errors import InputInvalid
from irload.plan.kernels.calls import Part


def thread_count(threads: int | None) -> int:
    """The number of threads: as asked for, else by IRLOAD_NUM_THREADS, else one for each processor we may use.

    Raises InputInvalid for anything but a positive integer.
    """
    asked = os.environ.get("IRLOAD_NUM_THREADS") if threads is None else threads
    if asked is None or asked == "":
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if not str(asked).isdigit() or not int(asked):
        raise InputInvalid(f"the number of threads must be a positive integer, found '{asked}'")
    return int(asked)


def run_part(part: Part) -> None:
    """Make the calls of one part."""
    for function, arguments in part:
        function(*arguments)


class Crew:
    """`threads − 1` workers that wait for parts; the caller's thread takes the first part itself.

    A lock a worker and direction is the cheapest barrier that Python has.
    """

    def __init__(self, threads: int) -> None:
        self._workers = [_Worker() for _ in range(threads - 1)]

    def run(self, parts: Sequence[Part]) -> None:
        """Run the parts, of which there are at most as many as threads, and wait for all. Raises what one raised."""
        hired = self._workers[: len(parts) - 1]
        for worker, part in zip(hired, parts[1:], strict=True):
            worker.begin(part)
        failure: BaseException | None = None
        try:
            run_part(parts[0])
        except BaseException as error:  # the others must come home before it may go on
            failure = error
        for worker in hired:
            failure = worker.finish() or failure
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Send the workers home."""
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def __del__(self) -> None:
        self.close()


class _Worker:
    def __init__(self) -> None:
        self._go, self._done = Lock(), Lock()
        self._go.acquire()
        self._done.acquire()
        self._part: Part | None = None
        self._failure: BaseException | None = None
        Thread(target=self._loop, daemon=True, name="irload").start()

    def begin(self, part: Part) -> None:
        self._part = part
        self._go.release()

    def finish(self) -> BaseException | None:
        self._done.acquire()
        failure, self._failure = self._failure, None
        return failure

    def stop(self) -> None:
        self._part = None
        self._go.release()

    def _loop(self) -> None:
        with np.errstate(all="ignore"):
            while True:
                self._go.acquire()
                part = self._part
                if part is None:
                    return
                try:
                    run_part(part)
                except BaseException as error:
                    self._failure = error
                self._part = None
                self._done.release()
