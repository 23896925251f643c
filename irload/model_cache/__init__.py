"""A cache of compiled plans in the user's cache folder, so that the next process runs a model without planning it.

The plan of a model with static shapes is cached if all of its steps are compiled kernels and the model was not modified
between reading and compilation. Any use of the compiled model other than inference reads the model from its files.
For models with dynamic shapes, the plan of the first shape is cached in the same way. Traced plans are cached without
weights, which are read from the model's file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irload.core.pause import uncollected
from irload.errors import ReadError, Where, out_of_memory
from irload.model_cache.identity import identity_of, is_plain
from irload.model_cache.plan_files import PlanFiles
from irload.model_cache.ports import described_dynamic
from irload.options import Options
from irload.plan.backends.base import foremost
from irload.plan.backends.compiled import CompiledBackend, StoredInvalid
from irload.plan.backends.registry import compiled_backend
from irload.plan.sanitizing import is_on
from irload.record import record
from irload.safety.fingerprint import has_hash
from irload.safety.opened import ModelFiles, open_model
from irload.safety.private_folder import PrivateFolder
from irload.safety.secret import kept_secret
from irload.sources import unchanged
from irload.system.machine import OFF

if TYPE_CHECKING:
    from irload.model import Model
    from irload.runtime.compiled_model import CompiledModel
    from irload.safety.cache_store import CacheStore

__all__ = ["CacheEntry", "entry_of", "models_folder", "store"]

VARIABLE = "IRLOAD_MODEL_CACHE"
"""The environment variable that disables the cache, if its value is in `OFF`."""
LARGEST = 1 << 30
"""Maximum bytes of all cached plans."""
LARGEST_PLAN = 1 << 28
"""Maximum bytes of constants in one plan: for larger plans, writing the file takes longer than many loads save."""
LARGEST_WEIGHTS = 1 << 32
"""Maximum bytes of the weights of a model with dynamic dims. Its plans refer to weights in the model's file."""
_DYNAMIC = re.compile(rb'type="Parameter"[^>]*>\s*<data\b[^>]*\bshape="[^"]*[?.-]')
"""Matches a Parameter with a dynamic dim."""


def models_folder() -> PrivateFolder:
    """Return the cache folder of plans."""
    return PrivateFolder("models", ".plan", LARGEST)


def store() -> CacheStore:
    """Return the store of cached plans that `irrun cache` lists."""
    from irload.safety.cache_store import CacheStore

    return CacheStore("compiled models", models_folder())


@record(eq=False, frozen=False)
class CacheEntry:
    """The cache entry of one model file. `key` depends on the file's content when it was opened, and on the options."""

    path: Path
    options: Options
    backend: CompiledBackend
    key: str
    files: ModelFiles
    model: Model | None = None
    """The model returned by `read`. Plans of other models are not stored in this entry."""

    def find(self) -> CompiledModel | None:
        """Return the cached model with its plan; None if it is missing or not authentic.

        Raises LimitExceeded or OutOfMemory for a plan that takes too much memory. With strict options, raises
        DeclaredDiffers if a port's declaration differs from the inferred type.
        """
        file = models_folder().open(self.key)
        if file is None:
            return None
        from irload.model_cache.cached import CachedModel
        from irload.model_cache.file import Damaged, plan_in

        try:
            with file, uncollected():
                plan = plan_in(file, self.key)
                self.files.close()
                if "variables" in plan.model:
                    return self._dynamic(plan.model)
                return CachedModel(plan, self.options, self.backend, self._whole)
        except (Damaged, StoredInvalid, OSError):
            return None
        except MemoryError as error:
            raise out_of_memory("for the plan", error) from None

    def read(self) -> Model:
        """Read the model from the files whose content is part of the key. Raises the errors of `read_model`."""
        from irload.loading import read_opened

        self.model = read_opened(self.options.file or self.path, self.files, self.options.limits)
        return self.model

    def serve(self, compiled: CompiledModel) -> None:
        """Let a compiled model restore and store traced plans, if its model is the one that `read` returned."""
        model = compiled.model
        if model is self.model:
            compiled.keep_plans(PlanFiles(models_folder(), self.key, lambda: described_dynamic(model)), LARGEST_PLAN)

    def keep(self, compiled: CompiledModel) -> None:
        """Store the plan of a compiled model, if it can be cached and its model is the one that `read` returned."""
        self.files.close()
        from irload.model_cache.keeping import kept_pieces

        pieces = kept_pieces(compiled, self.key, LARGEST_PLAN) if compiled.model is self.model else None
        if pieces is not None and unchanged():
            models_folder().write(self.key, pieces)

    def _dynamic(self, document: Mapping[str, Any]) -> CompiledModel:
        """Return a model with dynamic shapes, which runs cached plans."""
        from irload.model_cache.cached_dynamic import CachedDynamicModel
        from irload.read import sealed_weights

        files = PlanFiles(models_folder(), self.key)
        return CachedDynamicModel(
            document, self.options, self.backend, files, sealed_weights(self.files, self.options.limits), self._whole
        )

    def _whole(self) -> CompiledModel:
        """Read and compile the model of the file. Raises ReadError if the file has changed."""
        from irload.runtime.compiled_model import compiled_with

        now = _opened(self.path, self.options, self.backend)
        if now is None or now.key != self.key:
            raise ReadError("has changed since it was compiled; compile it again", Where(self.options.file))
        compiled = compiled_with(now.read(), self.options)
        now.serve(compiled)
        now.files.close()
        return compiled


def entry_of(model: str | Path, options: Options) -> CacheEntry | None:
    """Return the cache entry of a file, or None if its plan cannot be cached.

    Raises InputInvalid or Unsupported for options that this machine cannot provide.
    """
    off = os.environ.get(VARIABLE, "").strip().lower() in OFF
    backend = compiled_backend(options)
    if off or backend is None or options.tune or is_on() or foremost or not is_plain():
        return None
    if not has_hash() or kept_secret() is None:
        return None
    return _opened(Path(model).absolute(), options, backend)


def _opened(path: Path, options: Options, backend: CompiledBackend) -> CacheEntry | None:
    """Open a model and compute the key of its plan; None for files that are unreadable or too large."""
    largest = LARGEST_PLAN if options.precision == "f32" else 2 * LARGEST_PLAN  # constants in bf16 take half
    files = open_model(path, options.limits, lambda xml: LARGEST_WEIGHTS if _DYNAMIC.search(xml) else largest)
    return None if files is None else CacheEntry(path, options, backend, identity_of(files, options, backend), files)
