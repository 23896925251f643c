"""Which plans can be kept, and the file of one."""

from __future__ import annotations

from collections.abc import Iterator

from irload.model import Model
from irload.model_cache.file import pieces
from irload.model_cache.ports import described
from irload.model_cache.replica import placed
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.image import NoImage, imaged
from irload.plan.executor import Executor
from irload.run import CompiledModel


def kept_pieces(compiled: CompiledModel, key: str, largest: int) -> Iterator[bytes] | None:
    """The bytes of the file of a model's plan, None where it is not one table of compiled kernels.

    It is not where shapes are open, or something runs in NumPy or has a state. `largest`: bytes of constants beyond
    which none is kept.
    """
    model = compiled.model
    if model.sinks or not all(p.output.type.is_static for p in (*model.inputs, *model.outputs)):
        return None
    schedule = compiled.scheduled([p.output.type for p in model.inputs])
    if schedule.part is None or not schedule.is_static or schedule.rest:
        return None
    plan = compiled.take(schedule.part)
    try:
        return _pieces(model, plan, key, largest)
    except NoImage:
        return None
    finally:
        compiled.give_back(schedule.part, plan)


def _pieces(model: Model, plan: Executor, key: str, largest: int) -> Iterator[bytes] | None:
    executables = [segment.executable for segment in plan.segments]
    if len(executables) != 1 or not isinstance(executables[0], LlvmExecutable):
        return None
    arena = plan.memory.arena
    image, constants = imaged(executables[0].table, arena, executables[0].calls)
    if image.constants > largest or len(plan.taken) != len(model.inputs) or len(plan.given) != len(model.outputs):
        return None
    said = {
        **described(model),
        "taken": [placed(view, arena) for view in plan.taken],
        "given": [placed(view, arena) for view in plan.given],
    }
    return pieces(key, said, image, constants.pieces())
