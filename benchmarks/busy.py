"""A process that keeps one processor busy, beside which models are measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PEERS = ("jit", "OpenVINO")
"""The peers that are measured beside it."""


@contextmanager
def one_busy_process() -> Iterator[None]:
    """Keep one processor busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
