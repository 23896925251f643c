"""Memory that is reserved now and committed by the system page by page, when it is first written."""

from __future__ import annotations

import mmap
from typing import Any, cast

import numpy as np

from irload.core.tensor import Array
from irload.plan.memory.arena import aligned_bytes

_ANONYMOUS: int = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
"""Flags of private anonymous memory; 0 on Windows, which commits all memory of a map at once."""

COMMITS_LATE = bool(_ANONYMOUS)
"""True if the system commits pages at the first write."""


def reserved_bytes(size: int) -> Array:
    """Return `size` bytes, aligned to pages. Memory is used only for pages that have been written.

    Huge pages are avoided: one of 2 MiB for every buffer would take memory that may never be used, and its first write
    waits for the system to clear it. Raises MemoryError.
    """
    if not COMMITS_LATE:
        return aligned_bytes(size)
    try:
        pages: mmap.mmap = cast(Any, mmap.mmap)(-1, size, flags=_ANONYMOUS)  # Windows lacks `flags`
    except (OSError, ValueError, OverflowError) as error:
        raise MemoryError(f"{size} bytes of address space") from error
    small = getattr(mmap, "MADV_NOHUGEPAGE", None)
    if small is not None:
        pages.madvise(small)
    return np.frombuffer(pages, np.uint8)
