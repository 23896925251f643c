"""A worker process: loads the model once, then answers tasks until its parent closes the pipe or ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from threadpoolctl import threadpool_limits

from irload.batch.items import Done, Item, WorkerOptions
from irload.batch.task_runner import TaskRunner
from irload.errors import IRError, out_of_memory

Message = tuple[str, Any]
"""("ready", batching in words), ("done", Done), ("failed", an exception that ends the job)."""


def serve(pipe: Connection, options: WorkerOptions) -> None:
    """Answer tasks until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    tasks: SimpleQueue[bytes] = SimpleQueue()
    # Another thread reads tasks while a task runs: otherwise both processes could block on full pipes. When the parent
    # has ended, it ends the process before more results are written. The main thread unpickles the tasks, which may
    # import extension modules: while threadpoolctl lists the loaded libraries, an import by another thread deadlocks.
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    try:
        runner = TaskRunner(options)
        with threadpool_limits(options.threads):
            pipe.send(("ready", runner.predictor.batching))
            while True:
                items: list[Item] = pickle.loads(tasks.get())
                done = runner.run(items)
                pipe.send(("done", (done, runner.predictor.batching)))
    except BrokenPipeError:
        return
    except Exception as error:
        pipe.send(("failed", _sendable(error)))


def _receive(pipe: Connection, tasks: SimpleQueue[bytes]) -> None:
    try:
        while True:
            tasks.put(pipe.recv_bytes())
    except (EOFError, OSError):
        sys.stderr.flush()
        os._exit(0)


def _sendable(error: Exception) -> Exception:
    """The error in a form that can be pickled; irload's errors and system errors keep their types."""
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror or str(error), error.filename)
    if isinstance(error, MemoryError):
        return out_of_memory("in a worker", error)
    if isinstance(error, IRError):
        return type(error)(str(error))
    return RuntimeError(f"{type(error).__name__}: {error}")


__all__ = ["Done", "Message", "serve"]
