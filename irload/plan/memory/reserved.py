"""Memory that is reserved now and committed by the system page by page, when it is first written."""

from __future__ import annotations

import mmap
import sys

import numpy as np

from irload.core.tensor import Array
from irload.plan.memory.arena import aligned_bytes
from irload.system.portable import COMMITS_LATE, anonymous_pages


def reserved_bytes(size: int) -> Array:
    """Return `size` bytes, aligned to pages. Memory is used only for pages that have been written.

    Huge pages are avoided: a huge page per buffer would take 2 MiB that may never be used, and its first write waits
    until the system has cleared it. Raises MemoryError.
    """
    if not COMMITS_LATE:
        return aligned_bytes(size)
    try:
        pages = anonymous_pages(size)
    except (OSError, ValueError, OverflowError) as error:
        raise MemoryError(f"{size} bytes of address space") from error
    if sys.platform == "linux" and hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8)
