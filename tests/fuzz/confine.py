"""Runs each mutant in a forked process with limits on memory, time and files. Forking is faster than importing irload.

The forking process has a single thread: OPENBLAS_NUM_THREADS=1 is set before NumPy is imported.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import select
import shutil
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irload

LIMITS = irload.Limits(tensor_bytes=1 << 27, peak_bytes=1 << 29, iterations=1000)
"""The limits of irload for a mutant."""
MEMORY = 1 << 31
"""Bytes of address space that a mutant may add."""
LARGEST_FILE = 1 << 26
"""Maximum size in bytes of a file that a mutant may write, if writing is allowed."""
SECONDS = 60
"""Processor seconds after which a mutant counts as hanging: far more than the slowest machine needs."""
PATIENCE = 10
"""Wall-clock limit as a multiple of SECONDS, because other processes use the processor, too."""
GRACE = 60
"""Seconds that a hanging child has to report its stack."""
Task = Callable[[Path, Callable[[str], None]], dict[str, Any]]


@dataclass
class Confinement:
    """Runs tasks in forked processes, one at a time, each in an empty folder below `folder`."""

    folder: Path
    seconds: int = SECONDS
    patience: float = PATIENCE

    def run(self, task: Task) -> dict[str, Any]:
        """The result of the task, plus "seconds" and "peak" (bytes, including the parent's) of its process.

        A process that dies has the outcome "crash", one that exceeds its time "hang". `stage` is the last stage it
        reported.
        """
        inside = self.folder / "now"
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir(parents=True)
        here, there = os.pipe()
        gc.freeze()
        start = time.perf_counter()
        child = os.fork()
        if not child:
            os.close(here)
            _child(task, inside, there, self.seconds)
        os.close(there)
        lines, late = _heard(here, child, start + self.seconds * self.patience)
        _, status, usage = os.wait4(child, 0)
        os.close(here)
        message = _message(lines)
        code = os.waitstatus_to_exitcode(status)
        if late or code == -signal.SIGXCPU:
            message |= {"outcome": "hang", "words": f"more than {self.seconds} s", "trace": _trace(lines)}
        elif code or "outcome" not in message:
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            message |= {"outcome": "crash", "words": name, "trace": _trace(lines)}
        elif {f.name for f in inside.iterdir()} - {"model.xml", "model.bin"}:
            message |= {"outcome": "file left behind", "words": ", ".join(f.name for f in inside.iterdir())}
        return message | {"seconds": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}


def _heard(pipe: int, child: int, deadline: float) -> tuple[list[str], bool]:
    """The lines that a child wrote until it closed the pipe, and whether it had to be stopped."""
    data, late = b"", False
    while True:
        left = deadline - time.perf_counter()
        ready, _, _ = select.select([pipe], [], [], max(left, 0))
        if ready:
            piece = os.read(pipe, 1 << 16)
            if not piece:
                break
            data += piece
            if late:  # the rest of the stack follows immediately
                deadline = time.perf_counter() + 1
        elif not late:  # request its stack, then stop it
            late, deadline = True, time.perf_counter() + GRACE
            os.kill(child, signal.SIGUSR1)
        else:
            os.kill(child, signal.SIGKILL)
            break
    return data.decode(errors="replace").splitlines(), late


def _message(lines: list[str]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    for line in lines:
        if line.startswith("{"):
            message |= json.loads(line)
    return message


def _trace(lines: list[str]) -> str:
    return "\n".join(line for line in lines if not line.startswith("{"))[:3000]


def _child(task: Task, folder: Path, pipe: int, seconds: int) -> None:
    """Run the task and write its outcome to the pipe. Never returns."""

    def tell(what: dict[str, Any]) -> None:
        os.write(pipe, (json.dumps(what) + "\n").encode())

    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.enable(pipe)
        faulthandler.register(signal.SIGUSR1, pipe)
        faulthandler.register(signal.SIGXCPU, pipe, chain=True)
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
        tell(task(folder, lambda stage: tell({"stage": stage})))
        code = 0
    except BaseException as error:
        tell({"outcome": "broken harness", "words": f"{type(error).__name__}: {error}"})
        code = 0
    finally:
        os._exit(code)


def confine() -> None:
    """Limit the memory of this process and forbid it to write files. LIMITS are irload's limits to match."""
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, LARGEST_FILE))


@contextmanager
def writing() -> Generator[None]:
    """Allow files up to LARGEST_FILE inside the context, for tasks that write."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, LARGEST_FILE))
