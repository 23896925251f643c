"""Clears errors that rounding explains: simulated rounding errors in the same model cause errors of the same size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from irload.comparison.layer_error import Comparison, LayerError
from irload.comparison.sides import Sides
from irload.comparison.sources import run_plain
from irload.comparison.tolerances import is_constant_expression, jittered, unit
from irload.core.tensor import Array
from irload.errors import IRError
from irload.plan.interpreter import Scheduler
from irload.plan.schedule import ScheduledNode
from irload.runtime.observation import Observe, ObservedRun, Visit

__all__ = ["clear_rounding"]

DRAWS = 3
"""Number of runs with simulated rounding errors in every layer."""
MARGIN = 4.0
"""Factor on the distance in these runs up to which rounding explains an error."""


def clear_rounding(sides: Sides, inputs: Sequence[Array], comparison: Comparison) -> None:
    """Mark the errors that are no larger than MARGIN times the effect of simulated rounding errors on the same output.

    Layers that the other side fuses are not compared, so the error of the next layer includes their rounding errors.
    The model runs again only if some error is beyond its tolerance.
    """
    failing = {e.name: 0.0 for e in comparison.layers if not e.passed and not e.problem}
    ends = [e for e in comparison.outputs if not e.passed and not e.problem]
    if not failing and not ends:
        return
    spread = [0.0] * len(sides.runner.results)
    clean: dict[str, Array] = {}

    def keep(visit: Visit) -> None:
        clean.update({name: array for name, _, array in visit.named() if name in failing})

    results = run_plain(sides.runner, inputs, lambda compiled: ObservedRun(compiled, {}, keep))
    for seed in range(DRAWS):

        def compare(visit: Visit) -> None:
            for name, _, array in visit.named():
                if name in clean:
                    failing[name] = max(failing[name], _apart(array, clean[name]))

        def moved(compiled: Scheduler, seed: int = seed, compare: Observe = compare) -> JitteredRun:
            return JitteredRun(compiled, compare, sides.precision, np.random.default_rng(seed))

        try:
            again = run_plain(sides.runner, inputs, moved)
        except IRError:  # for example if rounding decides a size
            continue
        spread = [max(s, _apart(p, q)) for s, p, q in zip(spread, again, results, strict=True)]
    by_output = {sides.names[n]: s for n, s in zip(sides.runner.results, spread, strict=True)}
    comparison.layers[:] = [_cleared(e, failing.get(e.name, 0.0)) for e in comparison.layers]
    comparison.outputs[:] = [_cleared(e, by_output.get(e.name, 0.0)) for e in comparison.outputs]


class JitteredRun(ObservedRun):
    """A run that adds a rounding error to the outputs of each layer, and to the decompressed weights it reads."""

    def __init__(self, compiled: Scheduler, observe: Observe, precision: str, rng: np.random.Generator) -> None:
        super().__init__(compiled, {}, observe)
        self._precision = precision
        self._rng = rng

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation on changed weights, and change its outputs."""
        node = scheduled.node
        given = [
            jittered(a, unit(i.node, self._precision), self._rng) if is_constant_expression(i.node) else a
            for a, i in zip(inputs, node.inputs, strict=True)
        ]
        share = unit(node, self._precision)
        return tuple(jittered(a, share, self._rng) for a in super().run_node(scheduled, given))


def _apart(a: Array, b: Array) -> float:
    if a.shape != b.shape or a.dtype == object:
        return 0.0
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.max(apart[np.isfinite(apart)], initial=0.0))


def _cleared(entry: LayerError, spread: float) -> LayerError:
    errors = [e.max_abs for e in (entry.own, entry.total) if e is not None and e.needed != np.inf]
    is_explained = not entry.passed and not entry.problem and bool(errors) and min(errors) <= MARGIN * spread
    return replace(entry, cleared=True) if is_explained else entry
