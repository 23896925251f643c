"""Plans of models kept in the user's cache, so that the next process runs a file without reading and planning it.

Kept are plans that are compiled kernels from the first step to the last, of files that were compiled as they are. Who
asks for anything but inferences gets it from the file, which is read then.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from irload.core.pause import uncollected
from irload.errors import ExecutionError, ReadError, Where
from irload.machine import OFF
from irload.model_cache.identity import identity_of, is_plain
from irload.plan.backends.base import Options, foremost
from irload.plan.backends.llvm.available import compiled_target
from irload.plan.sanitizing import is_on
from irload.private_folder import PrivateFolder
from irload.record import record

if TYPE_CHECKING:
    from irload.model import Model
    from irload.model_cache.cached import CachedModel
    from irload.plan.backends.llvm.target import Target
    from irload.run import CompiledModel

__all__ = ["Place", "models_folder", "place_of"]

VARIABLE = "IRLOAD_MODEL_CACHE"
"""The environment variable that turns this off."""
LARGEST = 1 << 30
"""Bytes that all plans may take."""
LARGEST_PLAN = 1 << 28
"""Bytes of constants that one may have: writing those of larger models takes longer than is saved for a while."""


def models_folder() -> PrivateFolder:
    """Where plans are kept."""
    return PrivateFolder("models", ".plan", LARGEST)


@record(eq=False)
class Place:
    """Where the plan of one file is kept, as it is now and compiled in one way."""

    path: Path
    options: Options
    target: Target
    key: str

    def find(self, *, strict: bool) -> CachedModel | None:
        """The model with its plan, None where there is none, or none to be trusted.

        Raises LimitExceeded or ExecutionError for a plan that takes too much memory.
        """
        file = models_folder().open(self.key)
        if file is None:
            return None
        from irload.model_cache.cached import CachedModel
        from irload.model_cache.file import Damaged, plan_in
        from irload.plan.backends.llvm.loader import ObjectInvalid

        try:
            with file, uncollected():
                plan = plan_in(file, self.key)
                return CachedModel(plan, self.options, self.target, self._read, strict=strict)
        except (Damaged, ObjectInvalid, OSError):
            return None
        except MemoryError as error:
            raise ExecutionError(f"there is not enough memory for the plan: {error}") from None

    def keep(self, compiled: CompiledModel) -> None:
        """Keep the plan of the model that was compiled from the file since, if it is one that can be kept."""
        if self._is_as_it_was():
            from irload.model_cache.keeping import kept_pieces

            pieces = kept_pieces(compiled, self.key, LARGEST_PLAN)
            if pieces is not None and models_folder().write(self.key, pieces):
                models_folder().trim()

    def _read(self) -> Model:
        """The model of the file. Raises ReadError where that has changed."""
        from irload.loading import read_model

        model = read_model(self.path, limits=self.options.limits)
        model.file = self.options.file
        if not self._is_as_it_was():
            raise ReadError("has changed since it was compiled; compile it again", Where(model.file))
        return model

    def _is_as_it_was(self) -> bool:
        return identity_of(self.path, self.options, self.target) == self.key


def place_of(model: str | Path, options: Options) -> Place | None:
    """Where the plan of a file is kept, None where there are no plans to be kept.

    Raises InputInvalid for options that this machine cannot meet.
    """
    off = os.environ.get(VARIABLE, "").strip().lower() in OFF
    target = compiled_target(options.jit, options.precision)
    if off or target is None or options.tune or is_on() or foremost or not is_plain():
        return None
    path = Path(model).absolute()
    key = identity_of(path, options, target)
    return None if key is None else Place(path, options, target, key)
