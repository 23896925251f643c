"""The two sides of a comparison: the model that runs layer by layer, and the outputs of the other side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from irload.comparison.matching import match
from irload.comparison.measures import Measures, measure
from irload.comparison.onnx_file import onnx_outputs
from irload.comparison.sources import Names, Stream, dumped, openvino, openvino_precision, output_name, plain, planned
from irload.core.tensor import Array
from irload.diagnostics.dump import INDEX
from irload.errors import InputInvalid
from irload.graph import Node
from irload.loading import read_model
from irload.model import Model
from irload.runtime.observation import labels
from irload.safety.limits import Limits

__all__ = ["WAYS", "Sides"]

WAYS = ("plain", "fast", "jit", "openvino", "openvino:bf16", "openvino:f16")
"""The ways to run a model that can be compared; OpenVINO computes in f32, or in the named type."""
_PASS = re.compile(r"\[\d+\]/")


class Sides:
    """The two sides. `runner` is the model whose layers run on the other side's inputs: A if run plainly, else B."""

    def __init__(
        self,
        a: Model | str | Path,
        b: Model | str | Path,
        model: Model | str | Path | None,
        limits: Limits,
        threads: int | None = None,
    ):
        first, second = _side(a, limits), _side(b, limits)
        models = [m for m in (first, second, None if model is None else _side(model, limits)) if isinstance(m, Model)]
        if not models:
            raise InputInvalid("one side must be a model, unless the model is given separately (--model)")
        first = models[0] if first == "plain" else first
        second = models[0] if second == "plain" else second
        if not isinstance(first, Model) and not isinstance(second, Model):
            raise InputInvalid(f"one of {_shown(a)} and {_shown(b)} must be a model or 'plain'")
        self.turned = not isinstance(first, Model)
        self.runner = cast(Model, second if self.turned else first)
        self._other = first if self.turned else second
        self._limits = limits
        self._threads = threads
        self._asked = self._other.partition(":")[2] if isinstance(self._other, str) else ""
        self.precision = openvino_precision(self._asked) if self._asked else "f32"
        """The type in which the other side computes f32."""
        self.names: Names = labels(self.runner)
        self.matched: dict[Node, Node] = {}
        """Node of the other model → its match in the runner."""
        if isinstance(self._other, Model):
            self.matched = {n: n for g in self.runner.walk() for n in g.nodes}
            if self._other is not self.runner:
                self.matched = match(self.runner, self._other)
        self.partners = {ours: theirs for theirs, ours in self.matched.items()}
        self._ours = _paths(self.runner, self.names, {n for g in self.runner.walk() for n in g.nodes})

    @property
    def are_models(self) -> bool:
        """Whether both sides are models run plainly, by the same code."""
        return isinstance(self._other, Model)

    @property
    def rounds_elsewhere(self) -> bool:
        """Whether the other side fuses layers or computes f16 in f32, so that it rounds at other layers."""
        return not self.are_models

    @property
    def may_fold(self) -> bool:
        """Whether the other side may be another graph, in which layers are folded into others.

        A dump written by irload is not: its index lists the output of each layer.
        """
        is_indexed = isinstance(self._other, Path) and (self._other / INDEX).is_file()
        return not self.are_models and self._other not in ("fast", "jit") and not is_indexed

    @property
    def is_openvino(self) -> bool:
        """Whether the other side is a run by OpenVINO."""
        return isinstance(self._other, str) and self._other.startswith("openvino")

    @property
    def is_of_other_weights(self) -> bool:
        """Whether the other side runs another model, which may store weights in another type."""
        return isinstance(self._other, Path)

    @cached_property
    def other_names(self) -> Names:
        """Return names for the nodes of the other model."""
        return labels(self._other) if isinstance(self._other, Model) else {}

    def other(self, inputs: Sequence[Array]) -> Stream:
        """Return the outputs of the other side, by the names of the layers of this one."""
        if isinstance(self._other, Model):
            theirs = self.other_names
            names = {n: self.names[self.matched[n]] if n in self.matched else f"\0{theirs[n]}" for n in theirs}
            known = _paths(self.runner, self.names, set(self.matched.values()))
            positions = {node: k for k, node in enumerate(self.runner.results)}
            results = [self.matched.get(n) for n in self._other.results]
            ends = [None if node is None else positions.get(node) for node in results]
            known |= {output_name(k) for k in ends if k is not None}
            pairs = plain(self._other, self._in_order(self._other, inputs), names, ends)
            return Stream(pairs, lambda name: _key(name) in known)
        if self._other in ("fast", "jit"):
            jit = self._other == "jit"
            return Stream(*planned(self.runner, inputs, self.names, jit=jit, threads=self._threads))
        if isinstance(self._other, str):
            pairs = openvino(self.runner, inputs, self.names, self._asked or "f32", self._threads)
            return Stream(pairs, lambda name: "]/" not in name)
        if self._other.suffix == ".onnx" and not self._other.is_dir():
            tensors = {
                tensor: f"{self.names[n]}:{o.index}" if len(n.outputs) > 1 else self.names[n]
                for n in self.runner.nodes
                for o in n.outputs
                for tensor in (o.names or ({n.name} if not o.index else ()))
            }
            pairs, listed = onnx_outputs(self._other, self.runner, inputs, tensors)
        else:
            pairs, listed = dumped(self._other, self._limits)
        return Stream(pairs, listed.__contains__)

    def shown(self, side: Model | str | Path) -> str:
        """Name a side, with its actual precision if the requested one is unavailable."""
        text = _shown(side)
        if side != self._other or self._asked in ("", self.precision):
            return text
        return f"{text} (in {self.precision}, as this processor has no {self._asked})"

    def is_ours(self, name: str) -> bool:
        """Whether the runner has an output of this name."""
        return name.startswith("\0output") or _key(name) in self._ours

    def measured(self, ours: Array, theirs: Array, tolerance: float, floor: float = 0.0) -> Measures:
        """Measure the errors of A against B, whichever of them is the runner."""
        a, b = (theirs, ours) if self.turned else (ours, theirs)
        return measure(a, b, tolerance, floor)

    def _in_order(self, model: Model, inputs: Sequence[Array]) -> list[Array]:
        """Return the inputs in the order of the other model's inputs."""
        if len(self.runner.inputs) != len(model.inputs):
            raise InputInvalid(
                f"the models have different numbers of inputs, {len(self.runner.inputs)} and {len(model.inputs)}"
            )
        given = {port.node: array for port, array in zip(self.runner.inputs, inputs, strict=True)}
        return [given[self.matched[port.node]] for port in model.inputs]


def _side(side: Model | str | Path, limits: Limits) -> Model | str | Path:
    """Return a model, a way to run one, or the path of a dump."""
    if isinstance(side, Model):
        return side
    if isinstance(side, str) and side in WAYS:
        return side
    path = Path(side)
    return path if path.is_dir() or path.suffix in (".npz", ".onnx") else read_model(path, limits=limits)


def _paths(model: Model, names: Names, nodes: Iterable[Node]) -> set[str]:
    """Return the names of layers prefixed by their bodies, without iterations; one per output if there are several."""
    paths: set[str] = set()
    wanted = set(nodes)
    pending: list[tuple[Any, str]] = [(model, "")]
    while pending:
        graph, before = pending.pop()
        for node in graph.nodes:
            if node in wanted:
                path = before + names[node]
                paths |= {path, *(f"{path}:{k}" for k in range(len(node.outputs)))}
        pending += [(body, f"{before}{names[node]}/{name}/") for node, name, body in graph.subgraphs()]
    return paths


def _key(name: str) -> str:
    return _PASS.sub("/", name)


def _shown(side: Model | str | Path) -> str:
    return (side.file or side.name or "the model") if isinstance(side, Model) else str(side)
