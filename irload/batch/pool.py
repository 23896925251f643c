"""Worker processes that may die: each has a pipe of its own, so that its death tears nothing but itself."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import cast

from irload.batch.items import Done, Recipe, Record, Task
from irload.batch.worker import serve
from irload.errors import ExecutionError

AHEAD = 2
"""Tasks that a worker has at most: one at work, one waiting."""
DEATHS = 3
"""Workers that may die of one item before it is given up."""


@contextmanager
def _deaf() -> Generator[None, None, None]:
    """Ctrl-C is ignored, by children born now from their first moment on. The parent's turn comes afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    ready: bool = False
    tasks: deque[Task] = field(default_factory=deque[Task])


class Pool:
    """`workers` processes that do tasks in no promised order. Holds no more tasks than it can begin soon."""

    def __init__(self, recipe: Recipe, workers: int) -> None:
        self._recipe = recipe
        self._count = workers
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._again: deque[Task] = deque()
        self._stillborn = 0
        self.stacking = ""
        self.deaths = 0

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        """What becomes of the tasks, which are taken as workers come free. Raises what ends the job."""
        try:
            while len(self._workers) < self._count:
                self._hire()
            source: Iterator[Task] | None = tasks
            while True:
                source = self._feed(source)
                if not self._again and not any(w.tasks for w in self._workers) and source is None:
                    return
                yield from self._collect()
        finally:
            self.close()

    def close(self) -> None:
        """Send all workers home; what they have not given back is lost."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def _hire(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._recipe), daemon=True)
        with _deaf():
            process.start()
        theirs.close()  # else its end stays open here, and its death goes unnoticed
        self._workers.append(_Worker(cast(BaseProcess, process), ours))

    def _feed(self, source: Iterator[Task] | None) -> Iterator[Task] | None:
        """Give each worker its next tasks, the idlest first. Returns None when the source has no more."""
        for level in range(AHEAD):
            for worker in list(self._workers):
                if len(worker.tasks) > level:
                    continue
                task = self._again.popleft() if self._again else None
                if task is None and source is not None:
                    task = next(source, None)
                    source = source if task is not None else None
                if task is None:
                    return source
                worker.tasks.append(task)
                with suppress(OSError):  # it died: _collect sees that and takes the task back
                    worker.pipe.send(task.items)
        return source

    def _collect(self) -> Iterator[Done]:
        """Wait for messages and deaths."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[cast(Connection, pipe)]
            try:
                kind, content = worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._bury(worker)
                continue
            if kind == "failed":
                raise content
            if kind == "ready":
                worker.ready, self.stacking, self._stillborn = True, content, 0
            else:
                worker.tasks.popleft()
                done, self.stacking = content
                yield done

    def _bury(self, worker: _Worker) -> Iterator[Done]:
        """Replace a dead worker and give its tasks to others; items that keep killing are given up."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        self.deaths += 1
        code = worker.process.exitcode
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn >= DEATHS:
                raise ExecutionError(f"{DEATHS} workers died while loading the model (exit code {code})")
        for k, task in enumerate(worker.tasks):
            if k or not worker.ready:  # it had not begun
                self._again.append(task)
                continue
            deaths = task.deaths + 1
            if deaths < DEATHS - 1:
                self._again.appendleft(replace(task, deaths=deaths))
            elif len(task.items) > 1:  # whose fault it is shows when each runs alone
                self._again.extendleft(Task([item], deaths) for item in reversed(task.items))
            elif deaths < DEATHS:
                self._again.appendleft(replace(task, deaths=deaths))
            else:
                how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
                yield Done([Record(task.items[0].name, reason=f"{deaths} workers died of it, the last {how}")])
        self._hire()
