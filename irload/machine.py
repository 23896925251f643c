"""What this process may use of the machine: processors, threads, and a folder to keep things in."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from irload.errors import InputInvalid

AVX512 = ("SkylakeX", "Cooperlake", "SapphireRapids")
"""OpenBLAS's sets of kernels that use AVX-512."""
OFF = ("0", "off", "no", "false")
"""Words by which an environment variable turns something off, in any case."""


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """The number of threads: as asked for, else by IRLOAD_NUM_THREADS, else one for each processor we may use.

    Raises InputInvalid for anything but a positive integer.
    """
    asked = os.environ.get("IRLOAD_NUM_THREADS") if threads is None else threads
    if asked is None or asked == "":
        return processors()
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", str(asked)):
        raise InputInvalid(f"the number of threads must be a positive integer below 1,000,000, found '{asked}'")
    return int(asked)


def processor(cpuinfo: str = "/proc/cpuinfo") -> str:
    """The name of the processor as far as it is known."""
    with suppress(OSError), open(cpuinfo, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return sys.platform


def cache_folder() -> Path:
    """Where irload keeps what it can find out again: IRLOAD_CACHE_DIR, or `irload` in the user's cache."""
    own = os.environ.get("IRLOAD_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        return Path(base) / "irload"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home, as in containers
        import tempfile

        return Path(tempfile.gettempdir()) / f"irload-{getattr(os, 'getuid', int)()}"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "irload"
