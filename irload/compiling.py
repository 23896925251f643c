"""Compiles a model: reads and plans it, or loads the plan that an earlier process cached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from irload.model import Model
from irload.model_cache import entry_of
from irload.options import CompileOptions, Options
from irload.runtime.compiled_model import CompiledModel, compiled_with
from irload.system.forks import unforked

__all__ = ["ModelFile", "compile_model"]


@unforked
def compile_model(
    model: Model | str | Path, threads: int | None = None, **options: Unpack[CompileOptions]
) -> CompiledModel:
    """Compile a model. A model with static inputs is planned now, any other model at its first inference.

    - `model`: a Model, or the path of an XML file.
    - `threads`: worker threads. None uses the environment variable IRLOAD_NUM_THREADS, or else one thread per processor
      that is available to the process.
    - `optimize`: False runs the operations one by one, by their reference `compute`.
    - `precise`: True excludes Winograd kernels, which are about twice as fast but round more than a plain sum.
    - `tune`: True times alternative NumPy kernels when a plan is created, and stores the fastest in the user's cache
      (IRLOAD_CACHE_DIR). Compiled kernels are not affected.
    - `jit`: True requires compiled kernels (`irload[jit]`), False uses NumPy only, None uses them if available.
    - `precision`: the arithmetic of products. "f32"; "bf16", which requires a processor with AMX or AVX512_BF16; or
      "auto": int8 for quantized data and weights, and for compressed weights; otherwise bf16 if the processor is
      faster in bf16 than in f32.
    - `limits`: bounds on planning and running. None uses the limits with which the model was read.
    - `strict`: True raises DeclaredDiffers for a port whose declaration contradicts the inferred type, here or in the
      inference whose shapes reveal it. Otherwise contradictions are warnings (`CompiledModel.warnings`).
    - `mmap`: for a path, map its .bin file (see `read_model`).
    - `cache`: for a path, load the plan from the user's cache if an earlier process has stored it, without reading the
      model; otherwise store it, if all steps are compiled kernels (up to 1 GiB in all; IRLOAD_MODEL_CACHE=off disables
      this). For a model with dynamic inputs, the plan of the first shape and the plan for many shapes are stored when
      they are created; the latter without weights. Files are identified by content.

    Raises Unsupported for a `jit` or `precision` that this machine cannot provide, InputInvalid for one that
    contradicts other `options` or the environment, TypeError for an unknown option, UnknownOperation naming every
    unknown operation, DeclaredDiffers, and LimitExceeded or OutOfMemory if the plan exceeds the limits or the memory.
    """
    if isinstance(model, Model):
        compiled = CompiledModel(model, threads, **options)
        compiled.prepare()
        return compiled
    file = ModelFile(model, Options.of(options, threads, file=str(model)))
    cached = file.find()
    if cached is not None:
        return cached
    compiled = file.compile(file.read())
    file.keep(compiled)
    return compiled


class ModelFile:
    """The file of a model, its options, and the policy of the cache of plans.

    Call `find`; if it returns None, call `read`, `compile` and `keep`. `weights`, `sha256`: as for `read_model`. The
    cache is used for optimized models with the weights beside the file, unless the options exclude it. Raises
    InputInvalid or Unsupported for options that this machine cannot provide.
    """

    def __init__(
        self,
        path: str | Path,
        options: Options,
        *,
        weights: str | Path | None = None,
        sha256: Mapping[str, str] | None = None,
    ) -> None:
        self._path = path
        self._options = options
        self._weights = weights
        self._sha256 = sha256
        by_default = weights is None and not sha256 and options.optimize and not options.mmap
        self._entry = entry_of(path, options) if by_default and options.cache else None

    def find(self) -> CompiledModel | None:
        """Return the compiled model from the cache, None if there is none.

        Raises DeclaredDiffers if the options are strict, LimitExceeded and OutOfMemory.
        """
        return None if self._entry is None else self._entry.find()

    def read(self) -> Model:
        """Read the model. Raises the errors of `read_model`."""
        if self._entry is not None:
            return self._entry.read()
        from irload.loading import read_model  # lazy import: a cached plan does not need it

        options = self._options
        return read_model(self._path, self._weights, limits=options.limits, sha256=self._sha256, mmap=options.mmap)

    def compile(self, model: Model) -> CompiledModel:
        """Compile the model that `read` returned, possibly reshaped. Raises the errors of `compile_model`."""
        compiled = compiled_with(model, self._options)
        if self._entry is not None:
            self._entry.serve(compiled)
        compiled.prepare()
        return compiled

    def keep(self, compiled: CompiledModel) -> None:
        """Store the plan in the cache, if it can be cached."""
        if self._entry is not None:
            self._entry.keep(compiled)
