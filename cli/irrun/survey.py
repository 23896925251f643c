"""Reads a model for display: collects faults instead of raising them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from irload import IRError, Limits, Model, Port, ReadError
from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.graph import Graph, Node, UnknownOp
from irload.inference import ShapeLike, as_shape
from irload.model import infer
from irload.read import Weights, read_graph
from irload.safety.integrity import Pins

__all__ = [
    "Filter",
    "Layer",
    "Survey",
    "infer_all",
    "is_unknown",
    "layers_of",
    "reshape_inputs",
    "survey",
    "warnings_of",
]


@dataclass
class Survey:
    """A model read as far as possible, with all faults, and the fault of each failing layer."""

    model: Model
    faults: list[IRError] = field(default_factory=list[IRError])
    failed: dict[Node, IRError] = field(default_factory=dict[Node, IRError])


def survey(
    path: Path, weights: Path | None, limits: Limits, pins: Pins | None = None, *, hashed: bool = False
) -> Survey:
    """Read a model; the weights are optional. Raises ReadError only if the XML cannot be read."""
    faults: list[IRError] = []
    source = None if weights is None else Weights(weights, limits)
    model = read_graph(path, source, faults.append, limits, sha256=pins, hashed=hashed)
    # A Parameter or Result without its port is a fault, and cannot be shown as an input or output.
    faults += [ReadError("has no output port", n.where(model.file)) for n in model.parameters if not n.outputs]
    model.parameters = [n for n in model.parameters if n.outputs]
    model.results = [n for n in model.results if n.inputs]
    return Survey(model, faults)


def reshape_inputs(surveyed: Survey, shapes: Mapping[str | int | Port, ShapeLike]) -> None:
    """Give inputs new shapes before inference."""
    for key, shape in shapes.items():
        node = surveyed.model.input(key).node
        node.op = type(node.op)(**{**node.op.attributes, "shape": as_shape(shape)})


def infer_all(surveyed: Survey) -> None:
    """Infer every layer; a layer that fails keeps its declared outputs, and its fault is recorded."""

    def note(node: Node, error: IRError) -> None:
        missing = isinstance(error, ReadError) and surveyed.model.weights_file is None and node.type == "Const"
        if missing:
            return  # reported once for the whole model, not per constant
        surveyed.failed.setdefault(node, error)

    infer(surveyed.model, note)
    if surveyed.model.weights_file is None:
        _trust_declared(surveyed.model)


def _trust_declared(model: Model) -> None:
    """Without weights, shapes that depend on constants are unknown; use the declared ones instead.

    If the number of outputs of a VariadicSplit is unknown, their element types are, too.
    """
    for graph in model.walk():
        for node in graph.nodes:
            for output in node.outputs:
                declared, element = output.declared, output.type.element
                met = None if declared is None else output.type.shape.meet(declared.shape)
                if declared is not None and met is not None:
                    output.type = TensorType(declared.element or dynamic if element is dynamic else element, met)


def warnings_of(surveyed: Survey) -> list[str]:
    """Return all notes for the reader of the report, most fundamental first."""
    model = surveyed.model
    notes = [str(f) for f in surveyed.faults]
    if model.weights_file is None and any(n.type == "Const" for g in model.walk() for n in g.nodes):
        notes.append("there is no .bin file beside the model; values of constants are unknown")
    notes += model.warnings
    notes += [str(e) for e in surveyed.failed.values()]
    return list(dict.fromkeys(notes))


@dataclass(frozen=True)
class Layer:
    """A node and the path of bodies that leads to it: empty in the outer graph, `loop/body` inside."""

    node: Node
    path: str


@dataclass(frozen=True)
class Filter:
    """Selects layers by type or name pattern; all layers if neither is given.

    Patterns are shell-style wildcards: `*`, `?`, `[abc]`. Types are compared regardless of case.
    """

    types: Sequence[str] = ()
    names: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.types or self.names)

    def __str__(self) -> str:
        """Return the options that state this filter."""
        given = (*(("--type", t) for t in self.types), *(("--name", n) for n in self.names))
        return " ".join(f"{option} '{pattern}'" for option, pattern in given)

    def of(self, layers: Sequence[Layer]) -> list[Layer]:
        """Return the layers that match."""
        return [x for x in layers if self._type(x.node.type) and self._name(x)]

    def _type(self, type: str) -> bool:
        return not self.types or any(fnmatchcase(type.lower(), t.lower()) for t in self.types)

    def _name(self, layer: Layer) -> bool:
        candidates = (layer.node.name, f"{layer.path}/{layer.node.name}")
        return not self.names or any(fnmatchcase(n, pattern) for n in candidates for pattern in self.names)


def layers_of(graph: Graph) -> list[Layer]:
    """Return every layer in topological order, the layers of a body right after the layer that runs it. Iterative."""
    layers: list[Layer] = []
    pending: list[tuple[Node, str]] = [(n, "") for n in reversed(graph.nodes)]
    inside: Mapping[Node, Sequence[tuple[str, Graph]]] = _bodies(graph)
    while pending:
        node, path = pending.pop()
        layers.append(Layer(node, path))
        for name, body in reversed(inside.get(node, ())):
            below = f"{path}/{node.name}/{name}" if path else f"{node.name}/{name}"
            pending += [(n, below) for n in reversed(body.nodes)]
    return layers


def _bodies(graph: Graph) -> dict[Node, list[tuple[str, Graph]]]:
    bodies: dict[Node, list[tuple[str, Graph]]] = {}
    for level in graph.walk():
        for node, name, body in level.subgraphs():
            bodies.setdefault(node, []).append((name, body))
    return bodies


def is_unknown(node: Node) -> bool:
    """Return True for a layer of an unknown operation."""
    return isinstance(node.op, UnknownOp)
