"""What speed depends on outside irload: the threads, and the kernels that NumPy's BLAS chose for this processor."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

__all__ = ["blas_hint", "show_config"]


def show_config() -> dict[str, Any]:
    """Print the versions, the threads and the BLAS that will be used, and what would make it faster; return all of it.

    Changes nothing. Raises InputInvalid where IRLOAD_NUM_THREADS is no positive integer.
    """
    found = config()
    for key, value in found.items():
        if value is not None:
            sys.stdout.write(f"{key:16} {value}\n")
    return found


def config() -> dict[str, Any]:
    """What `show_config` prints: values by name; `hint` is None where nothing is left to do."""
    import numpy as np
    from threadpoolctl import threadpool_info

    from irload import __version__
    from irload.machine import AVX512, thread_count

    blas = next((pool for pool in threadpool_info() if pool["user_api"] == "blas"), None)
    hint = None
    wanted = blas_hint()
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
        "blas variable": os.environ.get("OPENBLAS_CORETYPE"),
        "processors": os.cpu_count() or 1,
        "threads": thread_count(None),
        "hint": hint,
    }


@cache
def blas_hint(cpuinfo: str = "/proc/cpuinfo") -> str | None:
    """The OPENBLAS_CORETYPE that helps on this processor; None where OpenBLAS chooses well or the processor is unknown.

    On AMD processors with AVX-512 it chooses kernels for AVX2. It reads the variable when NumPy is first imported.
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
