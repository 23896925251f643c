"""The key of a cached plan: a digest of the files' content, the options, the machine, and irload's loaded sources."""

from __future__ import annotations

import hashlib
import sys

import ml_dtypes
import numpy as np

from irload.core.registry import table
from irload.options import Options
from irload.plan.backends.compiled import CompiledBackend
from irload.safety.opened import ModelFiles
from irload.sources import stamp


def identity_of(files: ModelFiles, options: Options, backend: CompiledBackend) -> str:
    """Return the digest of content, options, machine and sources.

    The content is hashed because files with different content may have equal times, inodes and paths.
    """
    parts = (
        *(hashlib.sha256(files.content).hexdigest(), files.weights and files.weights.seal.digest),
        *(options.threads, options.precise, options.precision, repr(options.limits), backend.name, backend.identity),
        *(sys.version, np.__version__, ml_dtypes.__version__, stamp()),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]


def is_plain() -> bool:
    """True if all registered operations are built in."""
    return all(cls.__module__.startswith("irload.") for versions in table.values() for cls in versions)
