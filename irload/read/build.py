"""Builds the graph from raw layers: resolves and parses operations, connects edges, builds bodies, binds constants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from irload.core.element import element_of_precision
from irload.core.op import Op
from irload.core.pause import uncollected
from irload.core.subgraph import Subgraph
from irload.errors import IRError, ReadError, UnknownOperation, Where
from irload.graph import Declared, Graph, Node, Output, UnknownOp, mark_reachable, topological
from irload.model import Model
from irload.ops.registry import resolve
from irload.read.constants import constant
from irload.read.faults import WARNINGS, OnFault, counted, raise_first
from irload.read.means import subtract_means
from irload.read.raw import RawEdge, RawGraph, RawLayer, RawNet, RawPort, RawPreprocess
from irload.read.weights import Weights
from irload.read.wiring import wired
from irload.safety.limits import DEFAULT, Deadline, Limits


def build(
    net: RawNet,
    weights: Weights,
    file: str | None = None,
    report: OnFault = raise_first,
    limits: Limits = DEFAULT,
) -> Model:
    """Build the Model of a raw net. If `report` collects faults, faulty layers become unknown operations."""
    model = Model([], [], [], [], file, name=net.name, ir_version=net.version, rt_info=net.rt_info, limits=limits)
    model.warnings += net.warnings
    model.rewritten = net.rewritten
    model.weights_file = weights.path
    builder = _Builder(weights, counted(report), model)
    with uncollected():
        graph = builder.graph(net.graph)
    model.nodes, model.parameters, model.results, model.sinks = (
        graph.nodes,
        graph.parameters,
        graph.results,
        graph.sinks,
    )
    if net.preprocess is not None:
        builder.means(model, net.preprocess)
    if net.is_v10:
        _name_as_before_v11(model)
    return model


class _Builder:
    def __init__(self, weights: Weights, report: OnFault, model: Model) -> None:
        self.weights = weights
        self.file = model.file
        self.report = report
        self.warnings = model.warnings
        self.limits = model.limits
        self.deadline = Deadline(model.limits)

    def graph(self, raw: RawGraph) -> Graph:
        """Build one level; bodies inside it are built by their layers."""
        layers: dict[int, RawLayer] = {}
        nodes: dict[int, Node] = {}
        for layer in raw.layers:
            if layer.id in layers:
                first = layers[layer.id]
                self.report(
                    ReadError(
                        f"has id {layer.id}, which '{first.name}' (line {first.line}) already has", self.where(layer)
                    )
                )
                continue
            layers[layer.id] = layer
            self.deadline.check()
            try:
                nodes[layer.id] = self.node(layer, self.operation(layer))
            except IRError as error:
                self.report(error.at(self.where(layer)))
                # Its outputs get the declared types, so that later layers can still be checked.
                nodes[layer.id] = self.node(layer, UnknownOp(layer.type, layer.version, layer.data, layer.bodies))
        self.connect(raw, layers, nodes)
        ordered = self.order(nodes)
        by_type = {t: [n for n in nodes.values() if n.type == t] for t in ("Parameter", "Result", "Assign")}
        graph = Graph(ordered, by_type["Parameter"], by_type["Result"], by_type["Assign"], self.file)
        mark_reachable(graph)
        return graph

    def order(self, nodes: Mapping[int, Node]) -> list[Node]:
        try:
            # No edge connects a ReadValue to its Assign. Assigns are last, because inference requires their variables.
            return topological(sorted(nodes.values(), key=lambda n: n.type == "Assign"), self.file)
        except ReadError as error:
            self.report(error)
            return list(nodes.values())

    # -- layers --------------------------------------------------------------------------------------------------------

    def node(self, layer: RawLayer, op: Op) -> Node:
        node = Node(layer.id, layer.name, op, line=layer.line, version=layer.version)
        node.text = layer.data
        node.rt_info = layer.rt_info
        node.output_names = None if layer.output_names is None else frozenset(layer.output_names)
        if all(p.is_declared for p in layer.inputs):
            node.declared_inputs = [self.declared(p, layer) for p in layer.inputs]
        node.outputs = [
            Output(node, k, frozenset(p.names), self.declared(p, layer) if p.is_declared else None, rt_info=p.rt_info)
            for k, p in enumerate(layer.outputs)
        ]
        if layer.type == "Result":
            node.outputs = []
        return node

    def operation(self, layer: RawLayer) -> Op:
        version = layer.version
        if layer.is_faulty:
            return UnknownOp(layer.type, version, layer.data, layer.bodies)
        if not version:
            self.warn(layer, "has no version; read as opset1")
            version = "opset1"
        try:
            cls, note = resolve(layer.type, version)
        except UnknownOperation as error:
            self.warn(layer, error.message)
            return UnknownOp(layer.type, version, layer.data, layer.bodies)
        if note:
            self.warn(layer, note)
        op, notes = cls.parse(layer.data, **self.supplied(cls, layer))
        for note in notes:
            self.warn(layer, note)
        return op

    def supplied(self, cls: type[Op], layer: RawLayer) -> dict[str, Any]:
        """Return the attributes without a text form: bodies, and the data of a constant."""
        parts: dict[str, Any] = {}
        for name, declaration in cls.declared.items():
            if declaration.supplied and name == "data" and layer.values is not None:
                parts[name] = partial(layer.values, self.weights)
            elif declaration.supplied and name == "data":
                parts[name] = constant(layer, self.weights, self.limits, partial(self.warn, layer))
            elif declaration.supplied and name in layer.bodies:
                parts[name] = self.subgraph(layer, name)
            elif declaration.supplied and declaration.required:
                raise ReadError(f"has no <{name}>")
        return parts

    # -- bodies --------------------------------------------------------------------------------------------------------

    def subgraph(self, layer: RawLayer, name: str) -> Subgraph:
        return wired(layer, name, self.graph(layer.bodies[name]))

    # -- edges ---------------------------------------------------------------------------------------------------------

    def connect(self, raw: RawGraph, layers: Mapping[int, RawLayer], nodes: Mapping[int, Node]) -> None:
        """Connect the inputs of every node. Port ids are mapped to positions in the layer's port lists."""
        inputs = {id: _positions(layer.inputs) for id, layer in layers.items()}
        outputs = {id: _positions(layer.outputs) for id, layer in layers.items()}
        fed: dict[tuple[int, int | None], Output | None] = {}
        for edge in raw.edges:
            end, start = (
                inputs.get(edge.to_layer, {}).get(edge.to_port),
                outputs.get(edge.from_layer, {}).get(edge.from_port),
            )
            key = (edge.to_layer, end)
            if end is None or start is None or key in fed:
                self.report(ReadError(_complaint(edge, layers, start, end), Where(self.file, edge.line)))
                if end is not None:
                    fed.setdefault(key, None)
                continue
            source = nodes.get(edge.from_layer)
            fed[key] = source.outputs[start] if source is not None and start < len(source.outputs) else None
        for id, node in nodes.items():
            layer = layers[id]
            wired = [fed.get((id, k)) for k in range(len(layer.inputs))]
            node.inputs = [w for w in wired if w is not None]
            unfed = [str(p.id) for k, p in enumerate(layer.inputs) if (id, k) not in fed]
            if unfed:
                listed = ", ".join(unfed[:8])
                self.report(ReadError(f"input port {listed} is fed by no edge", self.where(layer)))

    def means(self, model: Model, preprocess: RawPreprocess) -> None:
        """Insert the Subtract that `pre-process` describes."""
        try:
            subtract_means(model, preprocess, self.weights)
            mark_reachable(model)
        except IRError as error:
            self.report(error.at(Where(self.file, preprocess.line)))

    # -- the rest ------------------------------------------------------------------------------------------------------

    def declared(self, port: RawPort, layer: RawLayer) -> Declared:
        precision = None
        if port.precision is not None:
            try:
                precision = element_of_precision(port.precision)
            except IRError as error:
                self.report(error.at(Where(self.file, port.line, layer.id, layer.name, layer.type)))
        return Declared(precision, port.dims, port.line, port.id)

    def where(self, layer: RawLayer) -> Where:
        return Where(self.file, layer.line, layer.id, layer.name, layer.type)

    def warn(self, layer: RawLayer, text: str) -> None:
        if len(self.warnings) < WARNINGS:
            self.warnings.append(f"{self.where(layer)}: {text}")


def _complaint(edge: RawEdge, layers: Mapping[int, RawLayer], start: int | None, end: int | None) -> str:
    """Return the reason why an edge cannot be connected."""
    text = f"edge {edge.from_layer}:{edge.from_port} → {edge.to_layer}:{edge.to_port}"
    for layer in (edge.from_layer, edge.to_layer):
        if layer not in layers:
            return f"{text}: there is no layer {layer}"
    if start is None:
        return f"{text}: '{layers[edge.from_layer].name}' has no output port {edge.from_port}"
    target = layers[edge.to_layer].name
    if end is None:
        return f"{text}: '{target}' has no input port {edge.to_port}"
    return f"{text}: input port {edge.to_port} of '{target}' is already fed by another edge"


def _name_as_before_v11(model: Model) -> None:
    """Name the inputs and outputs of IR v10, which has no tensor names, after their layers."""
    for node in model.parameters:
        for output in node.outputs:
            output.names |= {node.name}
    for result in model.results:
        result.output_names = None
        for output in result.inputs:
            several = len(output.node.outputs) > 1
            output.names |= {f"{output.node.name}.{output.index}" if several else output.node.name}


def _positions(ports: list[RawPort]) -> dict[int, int]:
    """Return the position of each port id; the first if ports share an id."""
    return {p.id: k for k, p in reversed(list(enumerate(ports)))}
