"""Which plans can be kept, and the file of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irload.model_cache.file import pieces
from irload.model_cache.ports import described
from irload.model_cache.replica import placed
from irload.plan.backends.llvm.executable import LlvmExecutable
from irload.plan.backends.llvm.image import NoImage, imaged
from irload.plan.executor import Executor
from irload.run import CompiledModel


def kept_pieces(compiled: CompiledModel, largest: int) -> Callable[[], Iterator[bytes]] | None:
    """The bytes of the file of a model's plan, None where it is not one table of compiled kernels.

    It is not where shapes are open, or something runs in NumPy or has a state. `largest`: bytes of constants beyond
    which none is kept.
    """
    model = compiled.model
    given = [p.output.type for p in model.inputs]
    if model.sinks or not all(t.is_static for t in given):
        return None
    schedule = compiled.schedule(model, given, compiled._differences_for(given))  # pyright: ignore[reportPrivateUsage]
    if schedule.part is None or not schedule.is_static or schedule.rest:
        return None
    plan = compiled.take(schedule.part)
    try:
        return _pieces(compiled, plan, largest)
    except NoImage:
        return None
    finally:
        compiled.give_back(schedule.part, plan)


def _pieces(compiled: CompiledModel, plan: Executor, largest: int) -> Callable[[], Iterator[bytes]] | None:
    (executable, *others) = (segment.executable for segment in plan.segments) if plan.segments else (None,)
    if others or not isinstance(executable, LlvmExecutable):
        return None
    model, arena = compiled.model, plan.memory.arena
    image, constants = imaged(executable.table, arena, executable.calls)
    if image.constants > largest or len(plan.taken) != len(model.inputs) or len(plan.given) != len(model.outputs):
        return None
    said = {
        **described(model),
        "taken": [placed(view, arena) for view in plan.taken],
        "given": [placed(view, arena) for view in plan.given],
    }
    return lambda: pieces(said, image, constants.pieces())
