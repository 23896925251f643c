"""Models loaded from the cache file of their plan."""

from __future__ import annotations

from tempfile import TemporaryFile

from irload.model_cache import LARGEST_PLAN
from irload.model_cache.cached import CachedModel
from irload.model_cache.file import plan_in
from irload.model_cache.keeping import kept_pieces
from irload.plan.backends.registry import compiled_backend
from irload.runtime.compiled_model import CompiledModel


def from_cache_file(compiled: CompiledModel) -> CachedModel | None:
    """The model, loaded from the cache file of its plan; None if the plan cannot be cached."""
    backend = compiled_backend(compiled._options)
    pieces = kept_pieces(compiled, "key", LARGEST_PLAN)
    if backend is None or pieces is None:
        return None
    with TemporaryFile(buffering=0) as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        return CachedModel(plan_in(file, "key"), compiled._options, backend, lambda: compiled.model)
