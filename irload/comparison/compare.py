"""Comparing layer by layer: each layer's error, and the part of it that the layer makes itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, cast

import numpy as np

from irload.comparison.matching import match
from irload.comparison.measures import Measures, identical, measure, rms
from irload.comparison.onnx_file import onnx_outputs
from irload.comparison.paired import PairedRun
from irload.comparison.sources import Names, Stream, dumped, openvino, openvino_precision, plain, planned, run_plain
from irload.core.op import evaluate
from irload.core.tensor import Array
from irload.errors import InputInvalid, printable
from irload.graph import Node
from irload.inputs import bind
from irload.loading import read_model
from irload.model import Model
from irload.observation import Visit, as_patterns, chosen, labels, matches
from irload.run import CompiledModel
from irload.safety import DEFAULT, Limits

__all__ = ["TOLERANCES", "WAYS", "Comparison", "LayerError", "compare"]

WAYS = ("plain", "fast", "jit", "openvino", "openvino:bf16", "openvino:f16")
"""The ways to run a model that can be compared; OpenVINO computes in f32, or in the type that is named."""
TOLERANCES: Mapping[str, float] = {"f64": 1e-4, "f32": 1e-4, "f16": 5e-3, "bf16": 4e-2, "f8": 2e-1, "int8": 0.0}
"""The greatest |a − b| / (|b| + rms(b)) that passes, by type. i8 and u8 may differ by one, others not at all."""
_ROUNDING = {"f64": 1e-12, "f32": 2e-6, "f16": 2e-3, "bf16": 2e-2}
"""What rounding may make of the root mean square of the inputs: sums may cancel."""
_PASS = re.compile(r"\[\d+\]/")


@dataclass(frozen=True, slots=True)
class LayerError:
    """One output of a layer of both sides.

    `own` is the error that the layer makes of the same inputs, `total` that with all that came before it; None where it
    is not known. `problem` says why nothing was measured: types or shapes that differ.
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

    @property
    def passed(self) -> bool:
        """Whether its own error is within the tolerance; where that is unknown, its total one."""
        judged = self.total if self.own is None else self.own
        return not self.problem and (judged is None or judged.passed)


@dataclass(slots=True)
class Comparison:
    """The layers that both sides have, in order of execution; `unmatched` counts those of A that B does not show."""

    a: str
    b: str
    layers: list[LayerError] = field(default_factory=list[LayerError])
    unmatched: int = 0

    @property
    def passed(self) -> bool:
        """True where every layer passed."""
        return all(layer.passed for layer in self.layers)

    @property
    def first(self) -> LayerError | None:
        """The first layer that diverges by its own error."""
        return next((layer for layer in self.layers if not layer.passed), None)

    def __str__(self) -> str:
        first = self.first
        if first is None:
            return printable(f"PASSED: {self.a} and {self.b} agree in {len(self.layers)} outputs of layers")
        return printable(f"FAILED: {self.a} and {self.b} first diverge in {first.name} ({first.operation})")

    def _repr_html_(self) -> str:
        """The verdict and the layers that diverge, as a notebook shows them."""
        rows = "".join(
            f"<tr><td>{escape(printable(e.name))}</td><td>{escape(e.operation)}</td><td>{_needed(e.own)}</td>"
            f"<td>{_needed(e.total)}</td><td>{e.tolerance:g}</td></tr>"
            for e in self.layers
            if not e.passed
        )
        head = "<tr><th>layer</th><th>operation</th><th>own error</th><th>total error</th><th>tolerance</th></tr>"
        return f"<p>{escape(str(self))}</p>" + (f"<table>{head}{rows}</table>" if rows else "")


def compare(
    a: Model | str | Path,
    b: Model | str | Path,
    inputs: Any = None,
    *,
    model: Model | str | Path | None = None,
    tolerances: Mapping[str, float] | None = None,
    layers: str | Sequence[str] = (),
    limits: Limits = DEFAULT,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Compare two sides layer by layer and find the first layer that diverges by its own error.

    `a`, `b`: a Model or the path of one, which is run plainly; `plain`, `fast` (planned, in NumPy), `jit` (planned,
    with compiled kernels) or `openvino` (`openvino:bf16`), ways to run the model of the other side, or else `model`; a
    folder or an .npz with outputs by name, such as `dump_intermediates` writes; an ONNX file, which ONNX Runtime runs,
    matched by the names of tensors. `inputs` as for a call. Every layer is also run on the inputs that it has on the
    other side, so that an error that is inherited is told from one that is made. `tolerances`: numbers by element type,
    as in `TOLERANCES`, or by a pattern of names; `layers`: patterns of the layers to compare. `limits` are for what is
    read; `progress` is called with the number of outputs compared so far. Raises InputInvalid where there is no model,
    no layer matches, or `jit` cannot be had, Unsupported for OpenVINO or ONNX Runtime where it is missing, and what
    reading and running raise.
    """
    sides = _Sides(a, b, model, limits)
    patterns = as_patterns(layers)
    found = Comparison(sides.shown(a), sides.shown(b))
    given = bind(sides.runner.inputs, inputs)
    wanted = dict(tolerances or {})
    constants = _constants(sides, wanted)
    found.layers += [e for e in constants if not patterns or any(matches(e.name, p) for p in patterns)]
    other = sides.other(given)

    def judge(visit: Visit, freely: Sequence[Array | None]) -> tuple[list[Array], list[Array | None]]:
        here, there = list(visit.outputs), list(freely)
        for k, (name, tensor, array) in enumerate(visit.named()):
            theirs = other.take(name, wanted=sides.is_ours)
            if theirs is None:
                found.unmatched += 1
                continue
            element = tensor.element
            computed = sides.precision if element.name == "f32" else element.name
            tolerance = _tolerance(computed, theirs, name, wanted)
            problem = _problem(array, theirs)
            own_error = total_error = None
            if not problem:
                own_error = sides.measured(array, theirs, tolerance, 0.0)
                floor = 0.0 if own_error.passed else _floor(visit, computed)  # asked for rarely: it reads all inputs
                own_error = sides.measured(array, theirs, tolerance, floor) if floor else own_error
                if not own_error.passed and sides.is_wide and element.is_low_precision:
                    floor += _sensitivity(visit, k)
                    own_error = sides.measured(array, theirs, tolerance, floor)
                free = there[k]
                if free is not None:
                    total_error = own_error if free is array else sides.measured(free, theirs, tolerance, floor)
                # What is the same bit by bit becomes the same array, so that later layers run once.
                same = not own_error.max_abs and identical(array, theirs)
                here[k] = array if same else theirs.astype(array.dtype, copy=False)
                if free is not None and total_error is not None and not total_error.max_abs:
                    there[k] = here[k] if identical(free, here[k]) else free
            if chosen(visit, patterns):
                node = visit.node
                entry = (name, node.type, node.id, element.name, array.shape, tolerance, own_error, total_error)
                found.layers.append(LayerError(*entry, problem))
                if progress is not None:
                    progress(len(found.layers))
        return here, there

    try:
        with np.errstate(all="ignore"):
            run_plain(sides.runner, given, lambda compiled: PairedRun(compiled, judge, sides.names))
    finally:
        other.close()
    if not found.layers:
        raise InputInvalid(f"no layer of {found.a} matches one of {found.b}")
    return found


class _Sides:
    """Who runs each layer on the inputs of the other side: A where it is a model that is run plainly, else B."""

    def __init__(self, a: Model | str | Path, b: Model | str | Path, model: Model | str | Path | None, limits: Limits):
        first, second = _side(a, limits), _side(b, limits)
        models = [m for m in (first, second, None if model is None else _side(model, limits)) if isinstance(m, Model)]
        if not models:
            raise InputInvalid("one side must be a model, or the model be given as well (--model)")
        first = models[0] if first == "plain" else first
        second = models[0] if second == "plain" else second
        if not isinstance(first, Model) and not isinstance(second, Model):
            raise InputInvalid(f"one of {_shown(a)} and {_shown(b)} must be a model or 'plain'")
        self.turned = not isinstance(first, Model)
        self.runner = cast(Model, second if self.turned else first)
        self._other = first if self.turned else second
        self._limits = limits
        self._asked = self._other.partition(":")[2] if isinstance(self._other, str) else ""
        self.precision = openvino_precision(self._asked) if self._asked else "f32"
        """The type in which the other side computes f32."""
        self.names: Names = labels(self.runner)
        self.matched: dict[Node, Node] = {}
        if isinstance(self._other, Model):
            self.matched = {n: n for g in self.runner.walk() for n in g.nodes}
            if self._other is not self.runner:
                self.matched = match(self.runner, self._other)
        self._ours = _paths(self.runner, self.names, {n for g in self.runner.walk() for n in g.nodes})

    def other(self, inputs: Sequence[Array]) -> Stream:
        """The outputs of the other side, by the names of the layers of this one."""
        if isinstance(self._other, Model):
            theirs = labels(self._other)
            names = {n: self.names[self.matched[n]] if n in self.matched else f"\0{theirs[n]}" for n in theirs}
            known = _paths(self.runner, self.names, set(self.matched.values()))
            ordered = _in_order(self.runner, self._other, inputs)
            return Stream(plain(self._other, ordered, names), lambda name: _key(name) in known)
        if self._other in ("fast", "jit"):
            return Stream(*planned(self.runner, inputs, self.names, jit=self._other == "jit"))
        if isinstance(self._other, str):
            pairs = openvino(self.runner, inputs, self.names, self._asked or "f32")
            return Stream(pairs, lambda name: "]/" not in name)
        if self._other.suffix == ".onnx" and not self._other.is_dir():
            tensors = {
                tensor: f"{self.names[n]}:{o.index}" if len(n.outputs) > 1 else self.names[n]
                for n in self.runner.nodes
                for o in n.outputs
                for tensor in (o.names or {n.name})
            }
            pairs, listed = onnx_outputs(self._other, self.runner, inputs, tensors)
        else:
            pairs, listed = dumped(self._other, self._limits)
        return Stream(pairs, listed.__contains__)

    def shown(self, side: Model | str | Path) -> str:
        """A side by its name, with the precision that it has in place of the one asked for."""
        told = _shown(side)
        if side != self._other or self._asked in ("", self.precision):
            return told
        return f"{told} (in {self.precision}, as this processor has no {self._asked})"

    @property
    def is_wide(self) -> bool:
        """Whether the other side computes f16 in f32, and only what it returns is rounded."""
        return isinstance(self._other, str) and self._other.startswith("openvino")

    def is_ours(self, name: str) -> bool:
        """Whether the side that runs has an output of this name."""
        return _key(name) in self._ours

    def measured(self, ours: Array, theirs: Array, tolerance: float, floor: float) -> Measures:
        """The errors of A against B, whichever of both is run."""
        a, b = (theirs, ours) if self.turned else (ours, theirs)
        return measure(a, b, tolerance, floor)


def _side(side: Model | str | Path, limits: Limits) -> Model | str | Path:
    """A model, a way to run one, or the path of a dump."""
    if isinstance(side, Model):
        return side
    if isinstance(side, str) and side in WAYS:
        return side
    path = Path(side)
    return path if path.is_dir() or path.suffix in (".npz", ".onnx") else read_model(path, limits=limits)


def _constants(sides: _Sides, wanted: Mapping[str, float]) -> Iterator[LayerError]:
    """The constants of two models that differ; those that are one stand for nothing."""
    for theirs, ours in sides.matched.items():
        if theirs is ours or ours.type != "Const":
            continue
        a, b = (cast(Array, n.op.compute()) for n in (ours, theirs))
        element = ours.outputs[0].type.element
        name = sides.names[ours]
        tolerance = _tolerance(element.name, b, name, wanted)
        problem = _problem(a, b)
        error = None if problem else sides.measured(a, b, tolerance, 0.0)
        if problem or (error is not None and not error.passed):
            yield LayerError(name, "Const", ours.id, element.name, a.shape, tolerance, error, error, problem)


def _tolerance(element: str, theirs: Array, name: str, wanted: Mapping[str, float]) -> float:
    """That of a pattern for the name, else of the type; the looser one where the types differ."""
    for pattern, value in wanted.items():
        if pattern not in TOLERANCES and matches(name, pattern):
            return value
    known = {**TOLERANCES, **wanted}
    types = {element, {"float16": "f16", "bfloat16": "bf16"}.get(theirs.dtype.name, element)}
    return max(known.get("f8" if t.startswith("f8") else "int8" if t in ("i8", "u8") else t, 0.0) for t in types)


def _floor(visit: Visit, element: str) -> float:
    """Differences that count as none: of rounding, of one step of i8 and u8, of one level of FakeQuantize."""
    if element in ("i8", "u8"):
        return 1.0
    sources = max((rms(i) for i in visit.inputs if i.dtype.kind in "fV"), default=0.0)
    floor = _ROUNDING.get(element, 0.0) * sources
    levels = visit.node.op.attributes.get("levels") if visit.node.type == "FakeQuantize" else None
    if levels and len(visit.inputs) == 5 and visit.inputs[4].size:
        span = np.abs(visit.inputs[4].astype(np.float64) - visit.inputs[3].astype(np.float64)).max()
        floor = max(floor, 1.001 * float(span) / max(levels - 1, 1))
    return floor


def _sensitivity(visit: Visit, index: int) -> float:
    """How far an output moves where the inputs move as far as their type rounds: what the other side does not round."""
    op = visit.node.op
    if op.supplied or not op.folds:
        return 0.0
    rng = np.random.default_rng(0)
    moved = [
        (a.astype(np.float32) * (1 + _ROUNDING["f16"] / 2 * rng.choice([-1, 1], a.shape))).astype(a.dtype)
        if a.dtype.kind in "fV" and source.node.type != "Const"
        else a
        for a, source in zip(visit.inputs, visit.node.inputs, strict=True)
    ]
    again = evaluate(op, moved, visit.types, cast(Any, None))[index]
    return float(np.nanmax(np.abs(again.astype(np.float64) - visit.outputs[index].astype(np.float64)), initial=0.0))


def _problem(a: Array, b: Array) -> str:
    if a.shape != b.shape:
        return f"shape {list(a.shape)} against {list(b.shape)}"
    floats = [x.dtype.kind in "fV" for x in (a, b)]
    return f"type {a.dtype} against {b.dtype}" if floats[0] != floats[1] and "O" in a.dtype.kind + b.dtype.kind else ""


def _paths(model: Model, names: Names, nodes: set[Node]) -> set[str]:
    """The names of layers with the bodies that lead to them, without iterations; for each of several outputs."""
    found: set[str] = set()
    pending: list[tuple[Any, str]] = [(model, "")]
    while pending:
        graph, before = pending.pop()
        for node in graph.nodes:
            if node in nodes:
                own = before + names[node]
                found |= {own, *(f"{own}:{k}" for k in range(len(node.outputs)))}
        pending += [(body, f"{before}{names[node]}/{name}/") for node, name, body in graph.subgraphs()]
    return found


def _key(name: str) -> str:
    return _PASS.sub("/", name)


def _in_order(a: Model, b: Model, inputs: Sequence[Array]) -> list[Array]:
    """The inputs of A in the order in which B takes them: by name where all are shared, else as they stand."""
    if len(a.inputs) != len(b.inputs):
        raise InputInvalid(f"the models take {len(a.inputs)} and {len(b.inputs)} inputs")
    by_name = {p.any_name: array for p, array in zip(a.inputs, inputs, strict=True)}
    if all(p.any_name in by_name for p in b.inputs):
        return [by_name[p.any_name] for p in b.inputs]
    return list(inputs)


def _needed(error: Measures | None) -> str:
    return "–" if error is None else f"{error.needed:.3g}"


def _shown(side: Model | str | Path | CompiledModel) -> str:
    return (side.file or side.name or "the model") if isinstance(side, Model) else str(side)
