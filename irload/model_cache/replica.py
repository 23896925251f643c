"""A cached plan with its memory, for one inference at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.model_cache.file import Plan
from irload.options import Options
from irload.plan.backends.compiled import NotStorable, RestoredExecutable
from irload.plan.memory.arena import aligned_bytes
from irload.plan.memory.filling import Filling


class Replica:
    """A cached plan bound to an arena. Raises LimitExceeded if its arena and constants exceed `peak_bytes`."""

    def __init__(self, plan: Plan, code: RestoredExecutable, options: Options) -> None:
        size = plan.arena + plan.constants.size
        options.limits.require("peak_bytes", size, "the plan's constants and activations are too large")
        arena = aligned_bytes(plan.arena)
        self._executable = code.bind(arena, plan.constants, options.threads)
        self._inputs = Filling([_view(document, arena) for document in plan.model["taken"]])
        self._outputs = [_view(document, arena) for document in plan.model["given"]]

    def run(self, arrays: Sequence[Array], context: Any) -> tuple[Array, ...]:
        """Return copies of the results for these inputs. Raises LimitExceeded after the deadline of `context`."""
        self._inputs.fill(arrays)
        self._executable.run(context)
        return tuple(np.array(view, order="C") for view in self._outputs)


def placed(view: Array, arena: Array) -> Mapping[str, Any]:
    """Return the offset in the arena, dtype, shape and strides of a value. Raises NotStorable if it is outside."""
    at = view.ctypes.data - arena.ctypes.data
    if not 0 <= at < arena.size or view.dtype.kind not in "biuf":
        raise NotStorable("a value outside of the arena")
    return {"at": at, "dtype": view.dtype.str, "shape": view.shape, "strides": view.strides}


def _view(document: Mapping[str, Any], arena: Array) -> Array:
    return np.ndarray(tuple(document["shape"]), document["dtype"], arena, document["at"], tuple(document["strides"]))
