"""Cached plans with their memory: a replica runs one inference at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.model_cache.file import Plan
from irload.options import Options
from irload.plan.backends.compiled import CompiledBackend, NotStorable, RestoredExecutable
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


class Replicas:
    """The replicas of a cached plan, at most one per concurrent inference. Thread-safe. Raises as `Replica` does."""

    def __init__(self, plan: Plan, options: Options, backend: CompiledBackend) -> None:
        self._plan = plan
        self._options = options
        self._code = backend.restore(plan.code)
        self._idle = [self._new()]

    def run(self, arrays: Sequence[Array], context: Any) -> tuple[Array, ...]:
        """Return the results of an inference on an unused replica."""
        try:
            replica = self._idle.pop()
        except IndexError:
            replica = self._new()
        try:
            results = replica.run(arrays, context)
        except Exception:
            self._idle.append(replica)
            raise  # after an interrupt the replica is not reused: a thread may still write to its memory
        self._idle.append(replica)
        return results

    def _new(self) -> Replica:
        return Replica(self._plan, self._code, self._options)


def placed(view: Array, arena: Array) -> Mapping[str, Any]:
    """Return the offset in the arena, dtype, shape and strides of a value. Raises NotStorable if it is outside."""
    at = view.ctypes.data - arena.ctypes.data
    if not 0 <= at < arena.size or view.dtype.kind not in "biuf":
        raise NotStorable("a value outside of the arena")
    return {"at": at, "dtype": view.dtype.str, "shape": view.shape, "strides": view.strides}


def _view(document: Mapping[str, Any], arena: Array) -> Array:
    return np.ndarray(tuple(document["shape"]), document["dtype"], arena, document["at"], tuple(document["strides"]))
