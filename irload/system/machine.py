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
"""Values that disable a feature in an environment variable, in any case."""


def processors() -> int:
    """The number of processors this process may use: by its affinity mask, and by its container's quota, rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = processor_quota()
    return count if quota is None else max(1, min(count, ceil(quota)))


def exceeds_quota(threads: int) -> bool:
    """True if this number of busy threads would exhaust the container's quota before its period ends."""
    quota = processor_quota()
    return quota is not None and threads > quota


def thread_count(threads: int | None) -> int:
    """The number of threads: `threads`, else IRLOAD_NUM_THREADS, else one for each of `processors`.

    Raises InputInvalid for anything but a positive integer.
    """
    given = os.environ.get("IRLOAD_NUM_THREADS") if threads is None else threads
    if given is None or given == "":
        return processors()
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", str(given)):
        raise InputInvalid(f"the number of threads must be a positive integer below 1,000,000, found '{given}'")
    return int(given)


def turned_off(variable: str) -> str | None:
    """The setting `VARIABLE=off` as written in the environment, None if the variable does not disable its feature."""
    value = os.environ.get(variable, "").strip()
    return f"{variable}={value}" if value.lower() in OFF else None


def processor(cpuinfo: str = "/proc/cpuinfo") -> str:
    """The name of the processor, if known."""
    with suppress(OSError), open(cpuinfo, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return sys.platform


def cache_folder() -> Path:
    """The folder for data that can be recomputed: IRLOAD_CACHE_DIR, or `irload` in the user's cache."""
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
