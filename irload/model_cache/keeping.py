"""Selects the plans of static models that can be cached, and writes their files."""

from __future__ import annotations

from collections.abc import Iterator

from irload.model import Model
from irload.model_cache.file import pieces
from irload.model_cache.ports import described
from irload.model_cache.replica import placed
from irload.plan.backends.compiled import NotStorable, StorableExecutable
from irload.plan.executor import Executor
from irload.runtime.compiled_model import CompiledModel


def kept_pieces(compiled: CompiledModel, key: str, largest: int) -> Iterator[bytes] | None:
    """Return the contents of the cache file of a model's plan, or None unless the plan is one storable executable.

    Plans with dynamic shapes, with variables, or with steps that run in NumPy are not storable. `largest`: the maximum
    bytes of constants.
    """
    model = compiled.model
    if model.sinks or not all(p.output.type.is_static for p in (*model.inputs, *model.outputs)):
        return None
    schedule = compiled.scheduled([p.output.type for p in model.inputs])
    if schedule.part is None or not schedule.is_static or schedule.remaining:
        return None
    plan = compiled.take(schedule.part)
    try:
        return _pieces(model, plan, key, largest)
    except NotStorable:
        return None
    finally:
        compiled.give_back(schedule.part, plan)


def _pieces(model: Model, plan: Executor, key: str, largest: int) -> Iterator[bytes] | None:
    executables = [segment.executable for segment in plan.segments]
    if len(executables) != 1 or not isinstance(executables[0], StorableExecutable):
        return None
    arena = plan.memory.arena
    stored = executables[0].stored(arena)
    if (
        stored.nbytes > largest
        or len(plan.input_arrays) != len(model.inputs)
        or len(plan.output_arrays) != len(model.outputs)
    ):
        return None
    document = {
        **described(model),
        "taken": [placed(view, arena) for view in plan.input_arrays],
        "given": [placed(view, arena) for view in plan.output_arrays],
    }
    return pieces(key, document, arena.size, stored)
