"""Keeps one processor busy with a separate process while models are measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_busy_process() -> Iterator[None]:
    """Run a process that keeps one processor busy until the block ends."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
