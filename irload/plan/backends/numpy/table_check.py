"""For tests: check that the calls of a table use arrays in the memory of their step only.

Any other array is a silent NumPy copy from compile time: a stale input, or a result that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.views import owner_of
from irload.plan.ir.program import PlanInvalid, Step
from irload.plan.memory.memory import Memory


def check_table(
    step: Step, kernel: str, phases: Phases, memory: Memory, scratch: Scratch, constants: Sequence[Array]
) -> None:
    """Check that every array of the step's calls is in the buffers of its values, in scratch, or constant.

    Raises PlanInvalid.
    """
    known = {id(owner_of(a)) for a in constants}
    values = (v for v in (*step.inputs, *step.outputs) if not v.is_constant)
    homes = [byte_bounds(m) for m in (*(memory.buffer(memory.root(v)) for v in values), *scratch.chunks)]
    for function, arguments in (call for phase in phases for part in phase for call in part):
        for array in _arrays((getattr(function, "__self__", None), arguments)):
            low, high = byte_bounds(array)
            inside = not array.size or any(a <= low and high <= b for a, b in homes)
            if not inside and id(owner_of(array)) not in known and not _is_sealed(array):
                name = getattr(function, "__qualname__", repr(function))
                raise PlanInvalid(
                    f"{type(step).__name__} ({step.title}, {kernel}): {name} takes "
                    f"{array.dtype}{list(array.shape)}, which is neither in the buffers of the step's values "
                    "nor in scratch nor constant: a copy from compile time"
                )


def _is_sealed(array: Array) -> bool:
    """True for read-only memory, such as tables that kernels create."""
    owner = owner_of(array)
    return isinstance(owner, bytes) or (isinstance(owner, np.ndarray) and not owner.flags.writeable)


def _arrays(arguments: object) -> Iterator[Array]:
    """Yield the arrays in nested arguments."""
    if isinstance(arguments, np.ndarray):
        yield cast(Array, arguments)
    elif isinstance(arguments, list | tuple):
        for each in cast(Iterable[Any], arguments):
            yield from _arrays(each)
