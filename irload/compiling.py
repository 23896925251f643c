"""Making a model ready to run: read, planned, or as an earlier process kept it."""

from __future__ import annotations

from pathlib import Path

from irload.errors import InputInvalid
from irload.machine import thread_count
from irload.model import Model
from irload.model_cache import Place, place_of
from irload.plan.backends.base import Options
from irload.run import CompiledModel
from irload.safety import DEFAULT, Limits

__all__ = ["compile_model", "place_for"]


def compile_model(
    model: Model | str | Path,
    threads: int | None = None,
    *,
    optimize: bool = True,
    precise: bool = False,
    tune: bool = False,
    jit: bool | None = None,
    precision: str = "f32",
    limits: Limits | None = None,
    mmap: bool = False,
    strict: bool = False,
    cache: bool = True,
) -> CompiledModel:
    """Make a model ready to run. A model of static inputs is planned here, any other when its first inputs arrive.

    `model`: a Model, or the path of an XML file. `threads`: worker threads; None takes the environment variable
    IRLOAD_NUM_THREADS, else one for each processor. `optimize=False` runs every operation by its own readable
    `compute`, one after the other. `precise=True` avoids kernels that round more than a plain sum does (Winograd's
    convolutions), for about half of their speed. `tune=True` times the kernels that would do when a plan is made, and
    keeps the choice in the user's cache (IRLOAD_CACHE_DIR). `jit`: compiled kernels, for which `irload[jit]` is needed;
    None takes them where they can be had, True demands them, False leaves all to NumPy. `precision`: what they compute
    products in: "f32", "bf16", which needs a processor with AMX or AVX512_BF16, or "auto", bf16 where there is either,
    as OpenVINO does. `limits`: what running may take; None takes those that the model was read with. `mmap`: for a
    path, map its .bin file (see `read_model`). `strict=True` refuses files whose ports declare what is not inferred,
    which are warnings otherwise (`CompiledModel.warnings`): here, or where a port turns out untrue for the shapes of an
    inference, there. `cache`: for a path, take the plan that an earlier process kept in the user's cache, which runs
    without the file being read, or keep it there (up to 1 GB, IRLOAD_MODEL_CACHE=off for none): where all of it is
    compiled kernels and the files are as they were.

    Raises InputInvalid for a `jit` or `precision` that this machine cannot meet, UnknownOperation naming every
    operation that is unknown, DeclaredDiffers, and where the plan passes the limits or the memory, LimitExceeded or
    ExecutionError.
    """
    place = None
    if not isinstance(model, Model):
        given = limits or DEFAULT
        if cache and optimize and not mmap:
            place = place_for(model, threads, precise=precise, tune=tune, jit=jit, precision=precision, limits=given)
        found = None if place is None else place.find(strict=strict)
        if found is not None:
            return found
        from irload.loading import read_model  # which a plan that was kept does without

        model = read_model(model, limits=given, mmap=mmap)
    elif mmap:
        raise InputInvalid("mmap is for a path; the model is read already")
    compiled = CompiledModel(
        model,
        threads,
        optimize=optimize,
        precise=precise,
        tune=tune,
        jit=jit,
        precision=precision,
        limits=limits,
        strict=strict,
    )
    compiled.prepare()
    if place is not None:
        place.keep(compiled)
    return compiled


def place_for(
    model: str | Path,
    threads: int | None = None,
    *,
    precise: bool = False,
    tune: bool = False,
    jit: bool | None = None,
    precision: str = "f32",
    limits: Limits = DEFAULT,
) -> Place | None:
    """Where the plan of a file is kept that is compiled in this way; None where none is. Raises InputInvalid."""
    return place_of(model, Options(thread_count(threads), precise, tune, jit, precision, limits, str(model)))
