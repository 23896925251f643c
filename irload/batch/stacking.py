"""Derives from the shapes of a model whether and how many samples may share one inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irload.core.shape import Dim, Shape
from irload.errors import IRError
from irload.graph import Port
from irload.model import Model


@dataclass(frozen=True, slots=True)
class Stacking:
    """How many samples share an inference.

    If `stacked`, axis 0 of every input and output is the sample axis. An inference takes `min_samples` to
    `max_samples` samples; fewer are padded. `why` is the reason if `max_samples` is 1.
    """

    stacked: bool
    min_samples: int = 1
    max_samples: int = 1
    why: str = ""

    def __str__(self) -> str:
        if self.max_samples == 1:
            return f"one at a time: {self.why}" if self.why else "one at a time"
        if self.min_samples == self.max_samples:
            return f"{self.max_samples} at a time"
        return f"up to {self.max_samples} at a time"


def plan_stacking(model: Model, wanted: int) -> Stacking:
    """Return how to stack up to `wanted` samples. Reshapes the model if only its declared shapes limit the number."""
    why = _not_countable(model)
    if why:
        return Stacking(stacked=False, why=why)
    batch = _first(model)
    if any(n.type == "ReadValue" for g in model.walk() for n in g.nodes):
        stacked = _counts(model, (1,)) if batch.contains(1) else False
        return Stacking(stacked, why="the model has state")
    if batch.is_static and _widened(model, max(wanted, 2)):
        return Stacking(stacked=True, max_samples=wanted)
    if batch.is_static:
        size = batch.lo
        if not _counts(model, (size,)):
            return Stacking(stacked=False, why="its outputs have no axis of samples")
        return Stacking(True, size, size, "its shapes allow only one sample" if size == 1 else "")
    low = max(batch.lo, 1)
    high = max(low, wanted if batch.hi is None else min(wanted, batch.hi))
    probes = tuple({high, high - 1 if high > low else high, high + 1 if batch.hi is None else high})
    if not _counts(model, probes):
        return Stacking(stacked=False, why="its outputs have no axis of samples")
    return Stacking(True, low, high)


def _not_countable(model: Model) -> str:
    if not model.inputs:
        return "the model has no inputs"
    for port in model.inputs:
        if not port.partial_shape.rank:
            return f"input '{port.any_name}' of shape {port.partial_shape} has no axis of samples"
    firsts = {port.partial_shape[0] for port in model.inputs}
    return "" if len(firsts) == 1 else "its inputs differ in their first axis"


def _first(model: Model) -> Dim:
    return model.inputs[0].partial_shape[0]


def _shapes(model: Model, first: Dim | int | None) -> dict[str | int | Port, Shape]:
    return {k: Shape(first, *port.partial_shape[1:]) for k, port in enumerate(model.inputs)}


def _counts(model: Model, sizes: Sequence[int]) -> bool:
    """Return True if axis 0 of all outputs is n for inputs of n samples, for each n in `sizes`. Restores the shapes."""
    before = _shapes(model, _first(model))
    try:
        for size in sizes:
            model.reshape(_shapes(model, size))
            if not all(p.partial_shape.rank and p.partial_shape[0] == Dim(size, size) for p in model.outputs):
                return False
    except IRError:
        return False
    finally:
        model.reshape(before)
    return True


def _widened(model: Model, max_samples: int) -> bool:
    """Reshape a model with a fixed number of samples to any number. Returns False if that is impossible."""
    if not _counts(model, (max_samples, max_samples + 1)):
        return False
    before = _shapes(model, _first(model))
    try:
        model.reshape(_shapes(model, None))
    except IRError:
        model.reshape(before)
        return False
    return True
