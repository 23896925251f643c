"""The subject of all rules: one file, read as far as possible, with its graph, its types and every fault so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from irload.checks.inferences import DeclaredInference, ResilientInference
from irload.checks.weightscan import Scan
from irload.core.element import ElementType
from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import IRError, LimitExceeded, ReadError
from irload.graph import Graph, Node, Output, UnknownOp
from irload.model import Model
from irload.read import open_weights
from irload.read.build import build
from irload.read.raw import RawGraph, RawLayer, RawNet, RawPort
from irload.read.weights import Weights
from irload.read.xml import read_xml
from irload.safety.limits import DEFAULT, Limits
from irload.validation.declared import FITS, Judgement, declares_static, judge


@dataclass(frozen=True, eq=False)
class Scope:
    """One graph of the file, outer or body: as parsed from XML (`raw`) and as built (`graph`)."""

    subject: Subject
    raw: RawGraph
    graph: Graph
    owner: Node | None = None
    path: str = ""

    @cached_property
    def layers(self) -> dict[int, RawLayer]:
        """The layers by id; the first one if several share an id."""
        by_id: dict[int, RawLayer] = {}
        for layer in self.raw.layers:
            by_id.setdefault(layer.id, layer)
        return by_id

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
        """The inferred type of an output."""
        return self.subject.inference.types.get(output, UNKNOWN)

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

    @cached_property
    def unfed(self) -> list[tuple[RawLayer, RawPort]]:
        """The input ports without an edge, except in layers where edges to missing ports (IR202) explain them all."""
        ports: list[tuple[RawLayer, RawPort]] = []
        for layer in self.layers.values():
            fed = self.feeds(layer)
            bare = [p for p in layer.inputs if p.id not in fed]
            if bare and len(bare) > len(fed.keys() - {p.id for p in layer.inputs}):
                ports += [(layer, p) for p in bare]
        return ports

    @cached_property
    def dead_ends(self) -> list[RawLayer]:
        """The layers whose outputs feed nothing, except Parameter, Result and Assign."""
        used = {i for i, _ in self.used_ports}
        ends = [layer for i, layer in self.layers.items() if i not in used]
        return [layer for layer in ends if layer.outputs and layer.type not in ("Parameter", "Result", "Assign")]

    @cached_property
    def lost_producers(self) -> dict[tuple[int, int], RawLayer]:
        """For unfed input ports: a layer without consumers whose output declares the same type."""
        producers: dict[tuple[int, int], RawLayer] = {}
        for layer, port in self.unfed:
            for end in self.dead_ends:
                alike = any((o.precision, o.dims) == (port.precision, port.dims) for o in end.outputs)
                if alike and end not in producers.values():
                    producers[layer.id, port.id] = end
                    break
        return producers

    @cached_property
    def lost_ids(self) -> set[int]:
        """Ids that edges name but no layer has."""
        return {i for e in self.raw.edges for i in (e.from_layer, e.to_layer)} - self.layers.keys()

    @cached_property
    def renumbered(self) -> dict[int, RawLayer]:
        """The layer of each lost id: it shares its id with another layer, and has the ports that the edges name."""
        assigned: dict[int, RawLayer] = {}
        twins = [layer for layer in self.raw.layers if self.layers[layer.id] is not layer]
        for lost in self.lost_ids:
            takes = {e.to_port for e in self.raw.edges if e.to_layer == lost}
            gives = {e.from_port for e in self.raw.edges if e.from_layer == lost}
            # Either of the two layers may have the wrong id.
            for layer in (*twins, *(self.layers[t.id] for t in twins)):
                if takes == {p.id for p in layer.inputs} and gives == {p.id for p in layer.outputs}:
                    assigned[lost] = layer
        return assigned

    @cached_property
    def reached(self) -> set[int]:
        """Ids of the layers on which a Result or an Assign depends, edges to wrong ports and missing layers included.

        Layers before a broken edge count as reached, because another rule reports the edge.
        """
        ids: set[int] = set()
        pending = [i for i, layer in self.layers.items() if layer.type in ("Result", "Assign")]
        pending += [e.from_layer for e in self.raw.edges if e.to_layer in self.lost_ids]
        pending += [layer.id for layer in self.lost_producers.values()]
        while pending:
            i = pending.pop()
            layer = self.layers.get(i)
            if layer is not None and i not in ids:
                ids.add(i)
                pending += [source for fed in self.feeds(layer).values() for source in fed]
        return ids


@dataclass(eq=False)
class Subject:
    """The file being checked. `fatal` is the fault that ended reading, if any.

    `explained` has the lines of layers with reported errors; rules that run last report only other lines.
    """

    file: str
    net: RawNet = field(default_factory=RawNet)
    weights: Weights = field(default_factory=lambda: Weights(None))
    model: Model | None = None
    inference: ResilientInference = field(default_factory=ResilientInference)
    limits: Limits = DEFAULT
    fatal: IRError | None = None
    read_faults: list[IRError] = field(default_factory=list[IRError])
    build_faults: list[IRError] = field(default_factory=list[IRError])
    weights_fault: IRError | None = None
    scans: dict[tuple[int, int, ElementType], Scan | None] = field(
        default_factory=dict[tuple[int, int, ElementType], "Scan | None"]
    )
    constants: list[Any] | None = None
    target: str | None = None
    explained: set[int] = field(default_factory=set[int])

    @cached_property
    def scopes(self) -> list[Scope]:
        """The outer graph and every body, outermost first; also bodies of layers that could not be built."""
        if self.model is None:
            return []
        scopes = [Scope(self, self.net.graph, self.model)]
        for scope in scopes:  # grows while it is walked
            for layer, node in scope.pairs():
                for tag, raw in layer.bodies.items():
                    body = getattr(node.op.attributes.get(tag), "body", None)
                    if not isinstance(body, Graph):
                        alone = RawNet(version=self.net.version, graph=raw)
                        body = build(alone, self.weights, self.file, self.note, self.limits)
                    path = f"{scope.path}/{layer.name}/{tag}" if scope.path else f"{layer.name}/{tag}"
                    scopes.append(Scope(self, raw, body, node, path))
        return scopes

    def note(self, fault: IRError) -> None:
        """Record a fault of the builder, once, as bodies may be built twice."""
        if all((fault.message, fault.where) != (f.message, f.where) for f in self.build_faults):
            self.build_faults.append(fault)

    @cached_property
    def layers_by_line(self) -> dict[int | None, RawLayer]:
        """Every layer by the line on which it begins."""
        return {layer.line: layer for scope in self.scopes for layer in scope.raw.layers}

    @cached_property
    def paths(self) -> dict[int, str]:
        """Line of a layer → path of the bodies that contain it; only for layers in bodies."""
        return {layer.line: s.path for s in self.scopes[1:] for layer in s.raw.layers if layer.line is not None}

    @cached_property
    def misread(self) -> set[tuple[object, object]]:
        """(id, name) of the layers that could not be read completely."""
        return {(e.where.layer_id, e.where.layer_name) for e in self.read_faults if e.where is not None}

    @property
    def faulty(self) -> bool:
        """True when building or inferring met any fault."""
        return bool(self.build_faults or self.inference.faults)

    @cached_property
    def is_static(self) -> bool:
        """True if all sizes in the file are static."""
        return self.model is not None and declares_static(self.model)

    def judge(self, output: Output) -> Judgement:
        """The judgement of an output's declaration; FITS if the declaration follows from an earlier wrong one."""
        node = output.node
        tensor = self.inference.types.get(output)
        if tensor is None or isinstance(node.op, UnknownOp) or node in self.inference.failed:
            return FITS
        judgement = judge(output.declared, tensor)
        return judgement if judgement.fits or output in self._by_declarations.unexplained else FITS

    @cached_property
    def _by_declarations(self) -> DeclaredInference:
        # Without a time limit: the first inference stayed within it, and this one takes no longer.
        run = DeclaredInference(self.file, replace(self.limits, wall_time=None))
        self._infer_all(run)
        return run

    def infer(self) -> None:
        """Infer every graph from its operations."""
        self._infer_all(self.inference)

    def _infer_all(self, run: ResilientInference) -> None:
        for scope in self.scopes:
            outputs = [o for n in scope.graph.nodes for o in n.outputs]
            if scope.owner is not None and any(o in run.types for o in outputs):
                continue
            if scope.owner is not None:  # its inputs are unknown
                run.tainted.update(scope.graph.parameters)
            run.graph(scope.graph)


def examine(file: str | Path, weights: Any = None, target: str | None = None, limits: Limits = DEFAULT) -> Subject:
    """Read a file as far as possible. Never raises an IRError: faults are recorded on the subject."""
    subject = Subject(str(file), target=target, inference=ResilientInference(limits=limits), limits=limits)
    try:
        subject.net = read_xml(file, subject.read_faults.append, limits)
    except IRError as error:
        subject.fatal = error
        return subject
    try:
        subject.weights = open_weights(file, weights, limits)
    except IRError as error:
        subject.weights_fault = error
    try:
        subject.model = build(subject.net, subject.weights, subject.file, subject.note, limits)
        scopes = subject.scopes
    except (IRError, RecursionError) as error:
        subject.model = None
        subject.fatal = error if isinstance(error, IRError) else ReadError("is nested too deep")
        return subject
    for scope in scopes:
        for parameter in scope.graph.parameters:
            if not parameter.outputs:  # IR411 reports it; inference needs an output to store the type on
                parameter.outputs.append(Output(parameter, 0))
    try:
        subject.infer()
    except LimitExceeded as error:  # out of time
        subject.model, subject.fatal = None, error
    return subject


def named(node: Node) -> str:
    """A layer as the report names it: `Convolution 'conv1' (id 12)`."""
    return f"{node.type} '{node.name}' (id {node.id})"


def port_name(ports: list[RawPort], index: int, side: str) -> str:
    """A port as the report names it: `output port 2`."""
    return f"{side} port {ports[index].id}" if index < len(ports) else f"{side} {index}"
