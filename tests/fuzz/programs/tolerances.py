"""How far a planned result may be from the plain one, for each output of a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import irload
from irload.model import Model
from irload.runtime.compiled_model import CompiledModel
from tests.fuzz.programs.near import NORMAL, UNITS, PerturbedRun, RoundingModel, distance
from tests.harness.case import Array


class Tolerances:
    """The tolerance of each output, from plain runs with perturbed operands (`PerturbedRun`)."""

    def __init__(
        self,
        model: Model,
        rounding: RoundingModel,
        feeds: Sequence[Sequence[Array]],
        results: Sequence[list[Array] | str],
    ) -> None:
        self._model, self._rounding, self._feeds, self._results = model, rounding, feeds, results
        self._good = [r for r in results if not isinstance(r, str)]
        exact = ("exact_", "const", "dyadic", "normal", "odd") if rounding.exact else ()
        self._rounded = [not r.inputs[0].node.name.startswith(exact) for r in model.results]
        self._coarsest = _coarsest(model)
        self._odd = any(p.node.name.startswith("odd") for p in model.inputs)
        self._distances = [0.0] * len(model.outputs)
        self._overflows = False
        self._runs = 0

    def after(self, runs: int) -> list[float | None]:
        """The tolerance of each output, measured by `runs` plain runs with perturbed operands; None: equality.

        Infinite if the order of additions decides the result.
        """
        if not self._good:
            return []
        if any(self._rounded) or self._odd or not all(_is_finite(a) for r in self._good for a in r):
            for seed in range(self._runs, runs):
                self._measure(seed)
        self._runs = max(self._runs, runs)
        if self._overflows:  # for example sums of the maximum of an empty set, whose order decides about infinities
            return [np.inf] * len(self._rounded)
        return [self._of(k) for k in range(len(self._rounded))]

    def _of(self, k: int) -> float | None:
        results = [r[k] for r in self._good]
        if not self._rounding.exact and (self._odd or any(a.dtype.kind not in "fV" for a in results)):
            return np.inf
        if not self._rounded[k]:
            return None
        floor = max(_floor(a, self._rounding, self._coarsest) for a in results)
        return self._rounding.factor * max(self._distances[k], floor)

    def _measure(self, seed: int) -> None:
        """One plain run of all inferences with perturbed operands."""
        compiled = CompiledModel(self._model, 1, optimize=False)
        variables: dict[str, Array] = {}
        for feed, plain in zip(self._feeds, self._results, strict=True):
            run = PerturbedRun(compiled, dict(variables), self._rounding, seed)
            try:
                arrays, types = compiled._bound([a.copy() for a in feed])
                perturbed = [np.array(a) for a in compiled.execute(run, types, arrays)]
            except irload.IRError:
                continue
            variables = run.variables
            self._overflows |= run.overflows
            if not isinstance(plain, str):
                gaps = [distance(a, b) for a, b in zip(plain, perturbed, strict=True)]
                self._distances = [max(a, b) for a, b in zip(self._distances, gaps, strict=True)]


def _is_finite(array: Array) -> bool:
    """Whether an array of floats contains neither NaN nor infinities; other types never do."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _floor(array: Array, rounding: RoundingModel, coarsest: str) -> float:
    """The lower bound of a distance: `rounding.floor` units in the last place of the largest number.

    For floats the unit is that of the coarsest intermediate type, if this is larger.
    """
    wide = array.astype(np.float64)
    largest = float(np.abs(wide[np.isfinite(wide)]).max(initial=0))
    unit = (rounding.of(array.dtype.name) or 0) * largest
    if coarsest and array.dtype.kind in "fV":
        unit = max(unit, UNITS[coarsest] * max(largest, NORMAL.get(coarsest, 0)))
    return rounding.floor * unit


def _coarsest(model: Model) -> str:
    """The 16-bit float with the largest unit in the program, or "": plans round to it only at the end."""
    nodes = (n for graph in model.walk() for n in graph.nodes if n.type not in ("Const", "Parameter"))
    names = {o.type.element.dtype.name for n in nodes for o in n.outputs}
    return max(names & {"float16", "bfloat16"}, key=UNITS.__getitem__, default="")
