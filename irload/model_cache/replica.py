"""A plan that was kept, over memory of its own. Serves one inference at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.model_cache.file import Plan
from irload.plan.backends.base import Options
from irload.plan.backends.llvm.image import NoImage, table_of
from irload.plan.backends.llvm.kernel import address
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.target import Target
from irload.plan.memory.filling import Filling


class Replica:
    """Kernels and memory as the plan had them when it was made. Raises LimitExceeded."""

    def __init__(self, plan: Plan, codes: Sequence[Code], target: Target, options: Options) -> None:
        size = plan.image.arena + plan.image.constants
        options.limits.require("peak_bytes", size, "the plan's constants and activations are too large")
        self._table, arena = table_of(plan.image, codes, plan.constants, target, options.threads)
        self._calls = plan.image.calls
        self._inputs = Filling([_view(said, arena) for said in plan.model["taken"]])
        self._outputs = [_view(said, arena) for said in plan.model["given"]]

    def run(self, arrays: Sequence[Array], context: Any) -> tuple[Array, ...]:
        """The results for these inputs, as copies. Raises LimitExceeded once the time of `context` is over."""
        self._inputs.fill(arrays)
        for first, last in self._calls:
            context.deadline.check()
            self._table.run(first, last)
        return tuple(np.array(view, order="C") for view in self._outputs)


def placed(view: Array, arena: Array) -> Mapping[str, Any]:
    """Where a value lies in the arena. Raises NoImage for one that lies elsewhere."""
    at = address(view) - address(arena)
    if not 0 <= at < arena.size or view.dtype.kind not in "biuf":
        raise NoImage("a value outside of the arena")
    return {"at": at, "dtype": view.dtype.str, "shape": view.shape, "strides": view.strides}


def _view(said: Mapping[str, Any], arena: Array) -> Array:
    return np.ndarray(tuple(said["shape"]), said["dtype"], arena, said["at"], tuple(said["strides"]))
