"""Runs Python in a separate process with limits on memory and processor time, for hostile files."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEMORY = 2 << 30
SECONDS = 600
"""Processor seconds after which a process counts as hanging: far more than the slowest machine needs."""


def confined(
    arguments: Sequence[object], *, memory: int = MEMORY, seconds: int = SECONDS, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """`python ARGUMENTS…` with at most `memory` bytes of address space and `seconds` of processor time.

    A process that allocates more dies or gets a MemoryError; one that waits forever is killed after twice that time.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=folder,
        preexec_fn=limit,
        timeout=2 * seconds,
        check=False,
    )


def irrun(*words: object, memory: int = MEMORY, seconds: int = SECONDS) -> subprocess.CompletedProcess[str]:
    """The command line, confined."""
    return confined(["-m", "irrun", *words], memory=memory, seconds=seconds)
