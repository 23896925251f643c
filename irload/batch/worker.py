"""A worker process: loads the model once, then answers tasks until its parent closes the pipe or is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from irload.batch.items import Done, Item, Recipe
from irload.errors import IRError

Message = tuple[str, Any]
"""("ready", stacking), ("done", Done), ("failed", an exception that ends the job)."""


def serve(pipe: Connection, recipe: Recipe) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what it means
    tasks: SimpleQueue[list[Item]] = SimpleQueue()
    # Tasks are taken off the pipe while another is worked on, so that neither side waits for the other for ever; and
    # when the parent is gone, nothing more is written.
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    try:
        from threadpoolctl import threadpool_limits

        from irload.batch.work import Work

        work = Work(recipe)
        with threadpool_limits(recipe.threads):
            pipe.send(("ready", str(work.predictor.stacking)))
            while True:
                done = work.do(tasks.get())
                pipe.send(("done", (done, str(work.predictor.stacking))))
    except BrokenPipeError:
        return
    except Exception as error:
        pipe.send(("failed", _sendable(error)))


def _receive(pipe: Connection, tasks: SimpleQueue[list[Item]]) -> None:
    try:
        while True:
            tasks.put(pipe.recv())
    except (EOFError, OSError):
        sys.stderr.flush()
        os._exit(0)


def _sendable(error: Exception) -> Exception:
    """The error as the parent can have it: errors of ours and of the system as they are."""
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror or str(error), error.filename)
    if isinstance(error, IRError):
        return type(error)(str(error))
    return RuntimeError(f"{type(error).__name__}: {error}")


__all__ = ["Done", "Message", "serve"]
