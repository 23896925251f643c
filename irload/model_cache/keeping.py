"""Selects the plans of static shapes that can be cached, and writes their files."""

from __future__ import annotations

from collections.abc import Iterator

from irload.model import Model
from irload.model_cache.file import pieces
from irload.model_cache.ports import Document, described
from irload.model_cache.replica import placed
from irload.plan.backends.compiled import NotStorable, StorableExecutable
from irload.plan.executor import Executor
from irload.runtime.compiled_model import CompiledModel


def kept_pieces(compiled: CompiledModel, key: str, largest: int) -> Iterator[bytes] | None:
    """Return the contents of the cache file of a static model, or None if its plan is not storable.

    None for models with dynamic shapes or variables, too. `largest`: the maximum bytes of constants.
    """
    model = compiled.model
    if model.sinks or not all(p.output.type.is_static for p in (*model.inputs, *model.outputs)):
        return None
    part = compiled.scheduled([p.output.type for p in model.inputs]).entire
    if part is None:
        return None
    plan = compiled.take(part)
    try:
        return plan_pieces(plan, model, described(model), key, largest)
    finally:
        compiled.give_back(part, plan)


def plan_pieces(plan: Executor, model: Model, document: Document, key: str, largest: int) -> Iterator[bytes] | None:
    """Return the contents of the cache file of the plan of an entire model for one shape.

    None unless it is one storable executable, with no steps that run in NumPy. `document`: the description of the
    model, to which the offsets and strides of inputs and outputs are added.
    """
    executables = [segment.executable for segment in plan.segments]
    ports = len(plan.input_arrays), len(plan.output_arrays)
    if len(executables) != 1 or ports != (len(model.inputs), len(model.outputs)):
        return None
    if not isinstance(executables[0], StorableExecutable) or executables[0].nbytes.get("packed weights", 0) > largest:
        return None
    arena = plan.memory.arena
    try:
        stored = executables[0].stored(arena)
        positions = {
            "taken": [placed(view, arena) for view in plan.input_arrays],
            "given": [placed(view, arena) for view in plan.output_arrays],
        }
    except NotStorable:
        return None
    return None if stored.nbytes > largest else pieces(key, {**document, **positions}, arena.size, stored)
