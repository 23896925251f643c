"""The result of compare: the errors of layers and of outputs, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from irload.comparison.measures import Measures
from irload.wording import printable

__all__ = ["Comparison", "LayerError"]


@dataclass(frozen=True, slots=True)
class LayerError:
    """One output of a layer of both sides, or a layer that only one of two models has.

    `own` is the error on equal inputs, `total` the error accumulated since the inputs of the model; None if unknown.
    `problem` is the reason if nothing was measured: types, shapes, a missing partner. `inherited`: its shape, or its
    inputs, differ because of an earlier layer. `cleared`: a later layer undoes the error, for example if the other side
    folds both into one, or the error is within the effect of rounding.
    """

    name: str
    operation: str
    id: int
    type: str
    shape: tuple[int, ...]
    tolerance: float
    own: Measures | None
    total: Measures | None
    problem: str = ""
    inherited: bool = False
    cleared: bool = False

    @property
    def passed(self) -> bool:
        """Whether the local error (`own`) or the total error is within the tolerance."""
        if self.cleared:
            return True
        if self.problem or self.inherited:
            return not self.problem
        known = [e for e in (self.own, self.total) if e is not None]
        return not known or any(e.passed for e in known)


@dataclass(slots=True)
class Comparison:
    """The layers that both sides have, in order of execution, and the outputs of the models.

    `outputs` holds the total error of each output that both sides have; one beyond its tolerance fails the comparison.
    `unmatched` counts outputs of layers of A that B does not return. `notes` list intended differences, known causes.
    `exact`: the same code runs both sides, so equal layers return equal bits.
    """

    a: str
    b: str
    layers: list[LayerError] = field(default_factory=list[LayerError])
    unmatched: int = 0
    outputs: list[LayerError] = field(default_factory=list[LayerError])
    notes: list[str] = field(default_factory=list[str])
    exact: bool = False

    @property
    def passed(self) -> bool:
        """True if every layer and every output passed."""
        return all(e.passed for e in (*self.layers, *self.outputs))

    @property
    def first(self) -> LayerError | None:
        """The first layer whose local error exceeds its tolerance; None if the comparison passed.

        If outputs diverge but every layer is within its tolerance: the first layer with a nonzero local error if both
        sides run the same code (`exact`), else the output.
        """
        for layer in self.layers:
            if not layer.passed:
                return layer
        for output in self.outputs:
            if not output.passed:
                small = (e for e in self.layers if self.exact and e.own is not None and e.own.max_abs)
                return next(small, output)
        return None

    def __str__(self) -> str:
        first = self.first
        if first is None:
            count = len(self.layers)
            outputs = f"{count} layer output{'' if count == 1 else 's'}"
            return printable(f"PASSED: {self.a} and {self.b} agree in {outputs}")
        why = f", {first.problem}" if first.problem else ""
        return printable(f"FAILED: {self.a} and {self.b} first diverge in {first.name} ({first.operation}){why}")

    def _repr_html_(self) -> str:
        """Return the verdict and the layers that diverge as HTML for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(printable(e.name))}</td><td>{escape(e.operation)}</td><td>{_needed(e.own)}</td>"
            f"<td>{_needed(e.total)}</td><td>{e.tolerance:g}</td></tr>"
            for e in (*self.layers, *self.outputs)
            if not e.passed
        )
        head = "<tr><th>layer</th><th>operation</th><th>own error</th><th>total error</th><th>tolerance</th></tr>"
        return f"<p>{escape(str(self))}</p>" + (f"<table>{head}{rows}</table>" if rows else "")


def _needed(error: Measures | None) -> str:
    return "–" if error is None else f"{error.needed:.3g}"
