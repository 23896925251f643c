"""Resources that this process may use: processors, threads, the cache folder."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from math import ceil
from pathlib import Path

from irload.errors import InputInvalid
from irload.system.quota import processor_quota

AVX512 = ("SkylakeX", "Cooperlake", "SapphireRapids")
"""OpenBLAS kernel sets that use AVX-512."""
OFF = ("0", "off", "no", "false")
"""Values of an environment variable that disable its feature; upper and lower case are equivalent."""


def processors() -> int:
    """Return the number of processors that this process may use: by its affinity mask, and at most by its quota.

    The quota of the process's container is rounded up.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = processor_quota()
    return count if quota is None else max(1, min(count, ceil(quota)))


def exceeds_quota(threads: int) -> bool:
    """True if this number of busy threads would exhaust the container's quota before its period ends."""
    quota = processor_quota()
    return quota is not None and threads > quota


def thread_count(threads: int | None) -> int:
    """Return the number of threads: `threads`, else IRLOAD_NUM_THREADS, else the number of `processors`.

    Raises InputInvalid for anything but a positive integer.
    """
    name, given = "the number of threads", threads
    if threads is None:
        name, given = "IRLOAD_NUM_THREADS", os.environ.get("IRLOAD_NUM_THREADS")
    if given is None or given == "":
        return processors()
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", str(given)):
        raise InputInvalid(f"{name} must be a positive integer below 1,000,000, found '{given}'")
    return int(given)


def turned_off(variable: str) -> str | None:
    """Return the setting of a variable that disables its feature, as `VARIABLE=off`; None if it does not disable it."""
    value = os.environ.get(variable, "").strip()
    return f"{variable}={value}" if value.lower() in OFF else None


def processor(cpuinfo: str = "/proc/cpuinfo") -> str:
    """Return the name of the processor; the platform's name if it is unknown."""
    with suppress(OSError), open(cpuinfo, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return sys.platform


def cache_folder() -> Path:
    """Return the folder for data that can be recomputed: IRLOAD_CACHE_DIR, or `irload` in the user's cache folder."""
    configured = os.environ.get("IRLOAD_CACHE_DIR")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        return Path(base) / "irload"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home, as in containers
        import tempfile

        return Path(tempfile.gettempdir()) / f"irload-{getattr(os, 'getuid', int)()}"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "irload"
