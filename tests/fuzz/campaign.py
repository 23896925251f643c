"""Distributes mutants to workers and collects their outcomes."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """The environment of a worker: one thread for BLAS, so that it may fork, and this folder on the path."""
    path = os.pathsep.join(p for p in (str(ROOT), str(ROOT / "cli"), os.environ.get("PYTHONPATH", "")) if p)
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return os.environ | one | {"PYTHONPATH": path}


def outcomes(count: int, seed: int, folder: Path, workers: int = 2, start: int = 0) -> Iterator[dict[str, Any]]:
    """The outcome of each mutant, in order of completion. Files of failures are written to `folder`."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for k in range(workers):
            numbers = map(str, (seed, start + k, start + count, workers))
            command = [sys.executable, "-m", "tests.fuzz.server", *numbers, str(folder / f"worker{k}")]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()))
        yield from _merged(processes)
    finally:
        for process in processes:
            with process:
                process.kill()


def _merged(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[dict[str, Any]]:
    begun: dict[int, bytes] = {}
    with selectors.DefaultSelector() as selector:
        for process in processes:
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                piece = os.read(key.fd, 1 << 16)
                *lines, begun[key.fd] = (begun.get(key.fd, b"") + piece).split(b"\n")
                for line in lines:
                    yield json.loads(line)
                if not piece:
                    selector.unregister(key.fileobj)
