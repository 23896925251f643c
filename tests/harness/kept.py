"""Plans by way of the file that keeps them."""

from __future__ import annotations

from tempfile import TemporaryFile

from irload.model_cache import LARGEST_PLAN
from irload.model_cache.cached import CachedModel
from irload.model_cache.file import plan_in
from irload.model_cache.keeping import kept_pieces
from irload.plan.backends.llvm.available import compiled_target
from irload.run import CompiledModel


def from_its_file(compiled: CompiledModel) -> CachedModel | None:
    """The model from a file of its plan, None where none can be kept."""
    options = compiled._options
    target = compiled_target(options.jit, options.precision)
    pieces = kept_pieces(compiled, "key", LARGEST_PLAN)
    if target is None or pieces is None:
        return None
    with TemporaryFile(buffering=0) as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        return CachedModel(plan_in(file, "key"), options, target, lambda: compiled.model, strict=False)
