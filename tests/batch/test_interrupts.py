"""Ctrl-C during the start of workers: it is not lost, and workers ignore it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from irload.batch.pool import WorkerPool
from irload.system.portable import interrupts_held

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no masks of signals")


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Context:
    """Starts no processes, but raises SIGINT during the start of one."""

    def Pipe(self) -> tuple[Any, Any]:
        return open(os.devnull), open(os.devnull)

    def Process(self, **_: object) -> Context:
        return self

    def start(self) -> None:
        signal.raise_signal(signal.SIGINT)

    def kill(self) -> None:
        """A no-op."""

    join = kill


def test_it_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    pool: Any = WorkerPool(Any, 2)
    monkeypatch.setattr(pool, "_context", Context())
    with pytest.raises(KeyboardInterrupt):
        pool._start_worker()
    assert len(pool._workers) == 1  # killed by the end of the pool
    pool.close()


def blocked(text: str) -> bool:
    match = re.search(r"SigBlk:\s*([0-9a-f]+)", text)
    assert match
    return bool(int(match[1], 16) & 1 << signal.SIGINT - 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_processes_started_meanwhile_ignore_it() -> None:
    shown = []

    def start() -> None:
        with interrupts_held():
            shown.append(
                subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
            )

    start()
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert list(map(blocked, shown)) == [True, True]
    assert not blocked(Path("/proc/self/status").read_text(encoding="ascii"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_may_take_the_signal() -> None:
    def meanwhile() -> None:
        with interrupts_held():
            thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
            thread.start()
            thread.join()
            reached.append(sum(range(1000)))  # the handler runs before

    reached: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        meanwhile()
    assert reached
