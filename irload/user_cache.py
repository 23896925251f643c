"""What irload keeps in the user's cache: compiled kernels and models, what was measured. All can be found again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from irload.model_cache import models_folder
from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.peaks import peaks_file
from irload.plan.backends.numpy.tuning import tuning_file

__all__ = ["Kept", "clear_cache", "kept"]


@dataclass(frozen=True, slots=True)
class Kept:
    """One kind of what is kept: where, in how many files, and their bytes."""

    what: str
    path: Path
    count: int
    nbytes: int


def kept() -> list[Kept]:
    """What the cache holds, one entry for each kind, whether there is any of it or not."""
    kernels, models = ObjectCache().contents(), models_folder().contents()
    return [
        Kept("compiled kernels", kernels.folder, kernels.count, kernels.nbytes),
        Kept("compiled models", models.folder, models.count, models.nbytes),
        _file("tuning", tuning_file()),
        _file("peaks", peaks_file()),
    ]


def clear_cache() -> list[Kept]:
    """Remove all of it, and give what there was. What cannot be removed stays."""
    found = kept()
    ObjectCache().clear()
    models_folder().clear()
    for entry in found:
        with suppress(OSError):
            if entry.path.is_file():
                entry.path.unlink()
    return found


def _file(what: str, path: Path) -> Kept:
    try:
        size = path.stat().st_size
    except OSError:
        return Kept(what, path, 0, 0)
    return Kept(what, path, 1, size)
