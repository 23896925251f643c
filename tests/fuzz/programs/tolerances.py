"""How far a planned result may be from the plain one, for each output of a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import irload
from irload.model import Model
from irload.runtime.compiled_model import CompiledModel
from tests.fuzz.programs.near import NORMAL, UNITS, Rounding, Shaken, distance
from tests.harness.case import Array


class Tolerances:
    """The tolerance of each output, from plain runs with moved operands (`Shaken`)."""

    def __init__(
        self, model: Model, rounding: Rounding, feeds: Sequence[Sequence[Array]], results: Sequence[list[Array] | str]
    ) -> None:
        self._model, self._rounding, self._feeds, self._results = model, rounding, feeds, results
        self._good = [r for r in results if not isinstance(r, str)]
        still = ("exact_", "const", "dyadic", "normal", "odd") if rounding.exact else ()
        self._rounded = [not r.inputs[0].node.name.startswith(still) for r in model.results]
        self._coarsest = _coarsest(model)
        self._odd = any(p.node.name.startswith("odd") for p in model.inputs)
        self._distances = [0.0] * len(model.outputs)
        self._overflows = False
        self._runs = 0

    def after(self, runs: int) -> list[float | None]:
        """The tolerance of each output, measured by `runs` plain runs with moved operands; None if it must be equal.

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
        least = max(_least(a, self._rounding, self._coarsest) for a in results)
        return self._rounding.factor * max(self._distances[k], least)

    def _measure(self, seed: int) -> None:
        """One plain run of all inferences with moved operands."""
        compiled = CompiledModel(self._model, 1, optimize=False)
        variables: dict[str, Array] = {}
        for feed, plain in zip(self._feeds, self._results, strict=True):
            run = Shaken(compiled, dict(variables), self._rounding, seed)
            try:
                arrays, given = compiled._bound([a.copy() for a in feed])
                moved = [np.array(a) for a in compiled.execute(run, given, arrays)]
            except irload.IRError:
                continue
            variables = run.variables
            self._overflows |= run.overflows
            if not isinstance(plain, str):
                gaps = [distance(a, b) for a, b in zip(plain, moved, strict=True)]
                self._distances = [max(a, b) for a, b in zip(self._distances, gaps, strict=True)]


def _is_finite(array: Array) -> bool:
    """Whether an array of floats contains neither NaN nor infinities; other types never do."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _least(array: Array, rounding: Rounding, coarsest: str) -> float:
    """The lower bound of a distance: `rounding.least` units in the last place of the largest number.

    For floats the unit is that of the coarsest intermediate type, if this is larger.
    """
    wide = array.astype(np.float64)
    largest = float(np.abs(wide[np.isfinite(wide)]).max(initial=0))
    unit = (rounding.of(array.dtype.name) or 0) * largest
    if coarsest and array.dtype.kind in "fV":
        unit = max(unit, UNITS[coarsest] * max(largest, NORMAL.get(coarsest, 0)))
    return rounding.least * unit


def _coarsest(model: Model) -> str:
    """The 16-bit float with the largest unit in the program, or "": plans round to it only at the end."""
    nodes = (n for graph in model.walk() for n in graph.nodes if n.type not in ("Const", "Parameter"))
    names = {o.type.element.dtype.name for n in nodes for o in n.outputs}
    return max(names & {"float16", "bfloat16"}, key=UNITS.__getitem__, default="")
