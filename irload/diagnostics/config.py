"""The configuration that affects speed: processors, threads, NumPy's BLAS, compiled kernels, caches."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

__all__ = ["blas_hint", "show_config"]

MIB = 1 << 20


def show_config() -> dict[str, Any]:
    """Print and return the versions, threads, BLAS, compiled kernels and caches that will be used.

    `hint` is advice for more speed. Raises InputInvalid for an invalid IRLOAD_NUM_THREADS or IRLOAD_JIT, Unsupported
    for an IRLOAD_JIT that this machine cannot run.
    """
    settings = config()
    for key, value in settings.items():
        if value is not None:
            sys.stdout.write(f"{key:17} {value}\n")
    return settings


def config() -> dict[str, Any]:
    """Return the values that `show_config` prints, by name; `hint` is None if there is nothing to improve."""
    import numpy as np
    from threadpoolctl import threadpool_info

    from irload import __version__
    from irload.options import Options
    from irload.plan.backends.registry import compiled_backend, status
    from irload.system.machine import AVX512, cache_folder, processors, thread_count

    blas = next((pool for pool in threadpool_info() if pool["user_api"] == "blas"), None)
    hint = None
    wanted = None if compiled_backend(Options()) is not None else blas_hint()  # compiled plans hardly use BLAS
    if blas is not None and wanted is not None and blas.get("architecture") not in AVX512:
        hint = (
            f"set OPENBLAS_CORETYPE={wanted} before Python starts: matmuls take about half the time on this processor"
        )
    return {
        "irload": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "blas": None if blas is None else f"{blas['internal_api']} {blas['version']}",
        "blas kernels": None if blas is None else blas.get("architecture"),
        "OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE"),
        "processors": processors(),
        "threads": thread_count(None),
        "compiled kernels": status(),
        "cache": str(cache_folder()),
        **_caches(),
        "hint": hint,
    }


def _caches() -> dict[str, str]:
    """Return the size of each cache of bounded size, and its bound."""
    from irload.diagnostics.user_cache import cache_usage
    from irload.model_cache import VARIABLE
    from irload.system.machine import turned_off

    usage = {
        entry.what: f"{entry.nbytes / MIB:.1f} of {entry.largest // MIB} MiB, {entry.count} files"
        for entry in cache_usage()
        if entry.largest is not None
    }
    off = turned_off(VARIABLE)
    return {
        "kernel cache": usage["compiled kernels"],
        "model cache": usage["compiled models"] + (f"; {off} turns it off" if off else ""),
    }


@cache
def blas_hint(cpuinfo: str = "/proc/cpuinfo") -> str | None:
    """Return the OPENBLAS_CORETYPE that helps on this processor; None if the default is good or unknown.

    On AMD processors with AVX-512 OpenBLAS chooses kernels for AVX2. OpenBLAS reads the variable when NumPy is
    first imported.
    """
    try:
        with open(cpuinfo, encoding="ascii", errors="replace") as file:
            head = file.read(8192)
    except OSError:
        return None
    first = dict(line.split(":", 1) for line in head.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.split() for key, value in first.items()}
    flags = set(fields.get("flags", []))
    needed = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    return "SkylakeX" if fields.get("vendor_id") == ["AuthenticAMD"] and needed <= flags else None
