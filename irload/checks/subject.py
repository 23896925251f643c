"""What rules look at: one file, read as far as it can be, with its graph, its types and every fault met on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from irload.checks.weightscan import Scan
from irload.core.element import ElementType
from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import IRError, ReadError
from irload.graph import Graph, Model, Node, Output
from irload.inference import Inference, Types
from irload.read import open_weights
from irload.read.build import build
from irload.read.raw import RawGraph, RawLayer, RawNet, RawPort
from irload.read.weights import Weights
from irload.read.xml import read_xml


@dataclass(frozen=True, eq=False)
class Scope:
    """One graph of the file, outer or body: as it stands in the XML (`raw`) and as built (`graph`)."""

    subject: Subject
    raw: RawGraph
    graph: Graph
    owner: Node | None = None

    @cached_property
    def layers(self) -> dict[int, RawLayer]:
        """The layers by id; of those that share one, the first."""
        found: dict[int, RawLayer] = {}
        for layer in self.raw.layers:
            found.setdefault(layer.id, layer)
        return found

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The nodes by id."""
        return {n.id: n for n in self.graph.nodes}

    def pairs(self) -> Iterator[tuple[RawLayer, Node]]:
        """Each layer that could be built, with its node."""
        for layer in self.layers.values():
            node = self.nodes.get(layer.id)
            if node is not None:
                yield layer, node

    def type(self, output: Output) -> TensorType:
        """What inference found for an output."""
        return self.subject.types.get(output, UNKNOWN)

    def feeds(self, layer: RawLayer) -> dict[int, list[int]]:
        """For each input port id of a layer, the ids of the layers whose edges end there."""
        return self._fed.get(layer.id, {})

    @cached_property
    def _fed(self) -> dict[int, dict[int, list[int]]]:
        fed: dict[int, dict[int, list[int]]] = {}
        for edge in self.raw.edges:
            fed.setdefault(edge.to_layer, {}).setdefault(edge.to_port, []).append(edge.from_layer)
        return fed

    @cached_property
    def used_ports(self) -> set[tuple[int, int]]:
        """(layer id, output port id) of every port that an edge starts from."""
        return {(e.from_layer, e.from_port) for e in self.raw.edges}


@dataclass(eq=False)
class Subject:
    """One file under check. `fatal` is set when nothing beyond it could be read."""

    file: str
    net: RawNet = field(default_factory=RawNet)
    weights: Weights = field(default_factory=lambda: Weights(None))
    model: Model | None = None
    types: Types = field(default_factory=dict[Output, TensorType])
    fatal: IRError | None = None
    read_faults: list[IRError] = field(default_factory=list[IRError])
    build_faults: list[IRError] = field(default_factory=list[IRError])
    weights_fault: IRError | None = None
    infer_faults: list[tuple[Node, IRError]] = field(default_factory=list[tuple[Node, IRError]])
    output_counts: dict[Node, int] = field(default_factory=dict[Node, int])
    scans: dict[tuple[int, int, ElementType], Scan | None] = field(
        default_factory=dict[tuple[int, int, ElementType], "Scan | None"]
    )
    target: str | None = None

    @cached_property
    def scopes(self) -> list[Scope]:
        """The outer graph and every body, outermost first."""
        if self.model is None:
            return []
        found = [Scope(self, self.net.graph, self.model)]
        for scope in found:  # grows while it is walked
            for layer, node in scope.pairs():
                for name, raw in layer.bodies.items():
                    body = getattr(node.op.attributes.get(name), "body", None)
                    if isinstance(body, Graph):
                        found.append(Scope(self, raw, body, node))
        return found


def examine(file: str | Path, weights: Any = None, target: str | None = None) -> Subject:
    """Read a file as far as possible. Never raises an IRError: what goes wrong is kept on the subject."""
    subject = Subject(str(file), target=target)
    try:
        subject.net = read_xml(file, subject.read_faults.append)
    except IRError as error:
        subject.fatal = error
        return subject
    try:
        subject.weights = open_weights(file, weights)
    except IRError as error:
        subject.weights_fault = error
    try:
        subject.model = build(subject.net, subject.weights, subject.file, subject.build_faults.append)
    except (IRError, RecursionError) as error:
        subject.fatal = error if isinstance(error, IRError) else ReadError("is nested too deep")
        return subject
    inference = Inference(subject.file, lambda node, error: subject.infer_faults.append((node, error)))
    inference.graph(subject.model)
    subject.types, subject.output_counts = inference.types, inference.counts
    return subject


def port_name(ports: list[RawPort], index: int, side: str) -> str:
    """A port as the report names it: `output port 2`."""
    return f"{side} port {ports[index].id}" if index < len(ports) else f"{side} {index}"
