"""The contents of the user's cache: compiled kernels and models, measurements. irload can recreate all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from irload import model_cache
from irload.plan.backends import registry
from irload.safety.cache_store import CacheStore

__all__ = ["CacheUsage", "cache_usage", "clear_cache"]


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """One kind of cache entry: its path, number of files, their bytes, and the maximum (None: unbounded)."""

    what: str
    path: Path
    count: int
    nbytes: int
    largest: int | None = None


def cache_usage() -> list[CacheUsage]:
    """Return one entry per kind, also for kinds without files; folders first."""
    return [_usage(store) for store in _stores()]


def clear_cache() -> list[CacheUsage]:
    """Remove all files, and return the previous contents. Files that cannot be removed remain."""
    usage = cache_usage()
    for store in _stores():
        store.clear()
    return usage


def _stores() -> list[CacheStore]:
    return sorted([*registry.stores(), model_cache.store()], key=lambda store: store.largest is None)


def _usage(store: CacheStore) -> CacheUsage:
    contents = store.contents()
    return CacheUsage(store.kind, contents.path, contents.count, contents.nbytes, store.largest)
