"""Worker processes that may die at any time. Each has a separate pipe, so its death cannot corrupt other messages."""

from __future__ import annotations

import multiprocessing
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, cast

from irload.batch.items import Done, ItemRecord, Task, WorkerOptions
from irload.batch.worker import serve
from irload.errors import OUT_OF_MEMORY, ExecutionError, OutOfMemory
from irload.system.portable import interrupts_held

if TYPE_CHECKING:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection as Connection
    else:
        from multiprocessing.connection import Connection

AHEAD = 2
"""Maximum tasks per worker: one running, one waiting."""
KILLED = 9
"""SIGKILL, which Windows does not name."""
DEATHS = 3
"""The number of workers that must die while running an item before the item fails."""


@dataclass(slots=True, eq=False)
class _WorkerProcess:
    process: BaseProcess
    pipe: Connection
    ready: bool = False
    tasks: deque[Task] = field(default_factory=deque[Task])


class WorkerPool:
    """`workers` processes that complete tasks in any order. Takes only tasks that can start soon."""

    def __init__(self, options: WorkerOptions, workers: int) -> None:
        self._options = options
        self._count = workers
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_WorkerProcess] = []
        self._retries: deque[Task] = deque()
        self._failed_starts = 0
        self.batching = ""
        self.deaths = 0

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        """Yield the results of tasks, which are read as workers become free. Raises errors that end the job."""
        try:
            while len(self._workers) < self._count:
                self._start_worker()
            source: Iterator[Task] | None = tasks
            while True:
                source = self._assign(source)
                if not self._retries and not any(w.tasks for w in self._workers) and source is None:
                    return
                yield from self._collect()
        finally:
            self.close()

    def close(self) -> None:
        """Kill all workers; results not returned yet are lost."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def _start_worker(self) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._options), daemon=True)
        with interrupts_held():  # Ctrl-C reaches the whole process group; only this process handles it
            process.start()
            theirs.close()  # otherwise the pipe would stay open after the end of the worker
            self._workers.append(_WorkerProcess(cast(BaseProcess, process), ours))

    def _assign(self, source: Iterator[Task] | None) -> Iterator[Task] | None:
        """Send tasks to workers, to the least loaded first. Returns None when the source is exhausted."""
        for level in range(AHEAD):
            for worker in list(self._workers):
                if len(worker.tasks) > level:
                    continue
                task = self._retries.popleft() if self._retries else None
                if task is None and source is not None:
                    task = next(source, None)
                    source = source if task is not None else None
                if task is None:
                    return source
                worker.tasks.append(task)
                with suppress(OSError):  # it has ended: _collect notices and retries the task
                    worker.pipe.send(task.items)
        return source

    def _collect(self) -> Iterator[Done]:
        """Wait for messages and for workers that end."""
        by_pipe = {worker.pipe: worker for worker in self._workers}
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[cast("Connection", pipe)]
            try:
                kind, content = worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._reap(worker)
                continue
            if kind == "failed":
                raise content
            if kind == "ready":
                worker.ready, self.batching, self._failed_starts = True, content, 0
            else:
                worker.tasks.popleft()
                done, self.batching = content
                yield done

    def _reap(self, worker: _WorkerProcess) -> Iterator[Done]:
        """Replace a worker that has ended and retry its tasks; a task that has ended DEATHS workers fails."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        self.deaths += 1
        code = worker.process.exitcode
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= DEATHS:
                how = _death(code)
                kind = OutOfMemory if OUT_OF_MEMORY in how else ExecutionError
                raise kind(f"{DEATHS} workers died while loading the model, the last {how}")
        for k, task in enumerate(worker.tasks):
            if k or not worker.ready:  # not started
                self._retries.append(task)
                continue
            deaths = task.deaths + 1
            if deaths < DEATHS - 1:
                self._retries.appendleft(replace(task, deaths=deaths))
            elif len(task.items) > 1:  # run alone, so that the item that causes it is identified
                self._retries.extendleft(Task([item], deaths) for item in reversed(task.items))
            elif deaths < DEATHS:
                self._retries.appendleft(replace(task, deaths=deaths))
            else:
                item = task.items[0]
                reason = f"{deaths} workers died while running it, the last {_death(code)}"
                yield Done([ItemRecord(item.name, reason=reason, number=item.number)])
        self._start_worker()


def _death(code: int | None) -> str:
    """How a process ended. Linux kills processes when memory runs out."""
    if code == -KILLED:
        return f"by signal {KILLED}, as when the system is {OUT_OF_MEMORY}; use fewer workers"
    return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
