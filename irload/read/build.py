"""From raw layers to the graph: operations resolved and parsed, edges connected, bodies built, constants bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import element_of_precision
from irload.core.op import Op
from irload.core.registry import resolve
from irload.core.shape import Shape
from irload.core.subgraph import Subgraph
from irload.errors import AttributeInvalid, IRError, ReadError, UnknownOperation, Where
from irload.graph import Declared, Graph, Model, Node, Output, UnknownOp, topological
from irload.read.raw import RawGraph, RawLayer, RawNet, RawPort
from irload.read.weights import Weights
from irload.read.wiring import wired
from irload.read.xml import Report, raise_first

Ports = dict[tuple[int, int], int]


def build(net: RawNet, weights: Weights, file: str | None = None, report: Report = raise_first) -> Model:
    """The Model of a raw net. Faults go to `report`, which may raise or collect; faulty layers are then left out."""
    model = Model([], [], [], [], file, name=net.name, ir_version=net.version, rt_info=net.rt_info)
    model.warnings += net.warnings
    model.weights_file = weights.path
    builder = _Builder(weights, file, report, model.warnings, net.version)
    graph = builder.graph(net.graph)
    model.nodes, model.parameters, model.results, model.sinks = (
        graph.nodes,
        graph.parameters,
        graph.results,
        graph.sinks,
    )
    if net.preprocess is not None:
        builder.subtract_means(model, net)
    return model


class _Builder:
    def __init__(
        self, weights: Weights, file: str | None, report: Report, warnings: list[str], ir_version: int
    ) -> None:
        self.weights = weights
        self.file = file
        self.report = report
        self.warnings = warnings
        self.ir_version = ir_version

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
            try:
                nodes[layer.id] = self.node(layer)
            except IRError as error:
                self.report(error.at(self.where(layer)))
        self.connect(raw, layers, nodes)
        ordered = self.order(nodes)
        by_type = {t: [n for n in nodes.values() if n.type == t] for t in ("Parameter", "Result", "Assign")}
        graph = Graph(ordered, by_type["Parameter"], by_type["Result"], by_type["Assign"], self.file)
        _mark_reachable(graph)
        return graph

    def order(self, nodes: Mapping[int, Node]) -> list[Node]:
        try:
            # What a ReadValue says of its variable is known before an Assign is met: there is no edge between them.
            return topological(sorted(nodes.values(), key=lambda n: n.type == "Assign"), self.file)
        except ReadError as error:
            self.report(error)
            return list(nodes.values())

    # -- layers --------------------------------------------------------------------------------------------------------

    def node(self, layer: RawLayer) -> Node:
        node = Node(layer.id, layer.name, self.operation(layer), line=layer.line, version=layer.version)
        node.text = layer.data
        node.rt_info = layer.rt_info
        node.output_names = None if layer.output_names is None else frozenset(layer.output_names)
        node.declared_inputs = [self.declared(p, layer) for p in layer.inputs]
        node.outputs = [
            Output(node, k, frozenset(p.names), self.declared(p, layer)) for k, p in enumerate(layer.outputs)
        ]
        if layer.type == "Result":
            node.outputs = []
        return node

    def operation(self, layer: RawLayer) -> Op:
        version = layer.version
        if not version:
            self.warn(layer, "has no version; read as opset1")
            version = "opset1"
        try:
            cls, note = resolve(layer.type, version)
        except UnknownOperation as error:
            self.warn(layer, error.message)
            return UnknownOp(layer.type, version, layer.data)
        if note:
            self.warn(layer, note)
        op, notes = cls.parse(layer.data, **self.supplied(cls, layer))
        for note in notes:
            self.warn(layer, note)
        return op

    def supplied(self, cls: type[Op], layer: RawLayer) -> dict[str, Any]:
        """What the file says of this layer elsewhere than in `data`."""
        found: dict[str, Any] = {}
        for name, declaration in cls.declared.items():
            if declaration.supplied and name == "data":
                found[name] = self.constant(layer)
            elif declaration.supplied and name in layer.bodies:
                found[name] = self.subgraph(layer, name)
            elif declaration.supplied and declaration.required:
                raise ReadError(f"has no <{name}>")
        return found

    def constant(self, layer: RawLayer) -> Any:
        """The data of a Const: a function that loads them, so that inspecting a model reads no weights."""
        texts: list[str] = []
        for key in ("element_type", "shape", "offset", "size"):
            if key not in layer.data:
                raise AttributeInvalid(f"attribute {key} is missing; Const requires it")
            texts.append(layer.data[key])
        element, shape = et.element(texts[0]), Shape.parse(texts[1]).static
        offset, size = _natural("offset", texts[2]), _natural("size", texts[3])
        count = int(np.prod(shape, dtype=object)) if shape else 1
        needed = element.bytes_for(count)
        if size < needed and element is not et.string:
            raise ReadError(f"size {size} is less than the {needed} bytes that {element}{list(shape)} takes")
        if size > needed and needed and element is not et.string:
            self.warn(layer, f"size {size} is more than the {needed} bytes that {element}{list(shape)} takes")
        if len(shape) > 64:
            raise ReadError(f"rank {len(shape)} is more than the 64 axes that NumPy holds")
        if element is not et.dynamic and count == 0:
            return lambda: np.zeros(shape, element.dtype)
        if self.weights.present:
            self.weights.check(offset, size)
        return lambda: self.weights.array(offset, size, element, shape)

    # -- bodies --------------------------------------------------------------------------------------------------------

    def subgraph(self, layer: RawLayer, name: str) -> Subgraph:
        return wired(layer, name, self.graph(layer.bodies[name]))

    # -- edges ---------------------------------------------------------------------------------------------------------

    def connect(self, raw: RawGraph, layers: Mapping[int, RawLayer], nodes: Mapping[int, Node]) -> None:
        """Give every node its inputs. Port ids are mapped to their positions in the layer's port lists."""
        fed: dict[tuple[int, int], Output] = {}
        for edge in raw.edges:
            where = Where(self.file, edge.line)
            text = f"edge {edge.from_layer}:{edge.from_port} → {edge.to_layer}:{edge.to_port}"
            if edge.from_layer not in layers or edge.to_layer not in layers:
                missing = edge.from_layer if edge.from_layer not in layers else edge.to_layer
                self.report(ReadError(f"{text}: there is no layer {missing}", where))
                continue
            source, target = layers[edge.from_layer], layers[edge.to_layer]
            start, end = _position(source.outputs, edge.from_port), _position(target.inputs, edge.to_port)
            if start is None or end is None:
                side = (
                    f"'{source.name}' has no output port {edge.from_port}"
                    if start is None
                    else f"'{target.name}' has no input port {edge.to_port}"
                )
                self.report(ReadError(f"{text}: {side}", where))
                continue
            if source.id not in nodes or target.id not in nodes:
                continue
            key = (edge.to_layer, end)
            if key in fed:
                twin = fed[key].node.name
                self.report(
                    ReadError(f"{text}: input port {edge.to_port} of '{target.name}' is already fed by '{twin}'", where)
                )
                continue
            outputs = nodes[source.id].outputs
            if start < len(outputs):
                fed[key] = outputs[start]
        for layer in layers.values():
            node = nodes.get(layer.id)
            if node is None:
                continue
            wired = [fed.get((layer.id, k)) for k in range(len(layer.inputs))]
            unfed = [str(p.id) for p, w in zip(layer.inputs, wired, strict=True) if w is None]
            node.inputs = [w for w in wired if w is not None]
            if unfed:
                self.report(ReadError(f"input port {', '.join(unfed)} is fed by no edge", self.where(layer)))

    # -- the rest ------------------------------------------------------------------------------------------------------

    def subtract_means(self, model: Model, net: RawNet) -> None:
        """Insert the Subtract that an old `pre-process` stands for, right after its Parameter."""
        assert net.preprocess is not None
        name, means = net.preprocess.layer_name, net.preprocess.means
        parameter = next((n for n in model.parameters if n.name == name), None)
        if parameter is None or not means:
            self.warnings.append(
                f"line {net.preprocess.line}: pre-process names no Parameter of the model, '{name}'; ignored"
            )
            return
        values = [
            np.float32(m.value).reshape(1, 1)
            if m.value is not None
            else self.weights.array(m.offset, m.size, et.f32, (1, m.size // 4))
            for m in means
        ]
        dims = parameter.op.attributes["shape"]
        spatial = (1, 1)
        if values[0].size > 1:
            spatial = dims[2:] and tuple(d.size for d in dims[2:])
        data = np.stack(values).astype(np.float32).reshape(len(values), *spatial)
        next_id = 1 + max(n.id for n in model.nodes)
        const_class, subtract_class = resolve("Const", "opset1")[0], resolve("Subtract", "opset1")[0]
        constant = Node(
            next_id,
            f"{name}/mean",
            const_class(element_type=et.f32, shape=Shape(*data.shape), offset=0, size=data.nbytes, data=lambda: data),
        )
        constant.outputs = [Output(constant, 0)]
        subtract = Node(next_id + 1, f"{name}/subtract_mean", subtract_class())
        subtract.outputs = [Output(subtract, 0)]
        source = parameter.outputs[0]
        for node in model.nodes:
            node.inputs = [subtract.outputs[0] if i is source else i for i in node.inputs]
        subtract.inputs = [source, constant.outputs[0]]
        model.nodes = topological([*model.parameters, constant, subtract, *model.nodes])
        _mark_reachable(model)

    def declared(self, port: RawPort, layer: RawLayer) -> Declared:
        precision = None
        if port.precision is not None:
            try:
                precision = element_of_precision(port.precision)
            except IRError as error:
                self.report(error.at(Where(self.file, port.line, layer.id, layer.name, layer.type)))
        return Declared(precision, port.dims, port.line)

    def where(self, layer: RawLayer) -> Where:
        return Where(self.file, layer.line, layer.id, layer.name, layer.type)

    def warn(self, layer: RawLayer, text: str) -> None:
        self.warnings.append(f"{self.where(layer)}: {text}")


def _mark_reachable(graph: Graph) -> None:
    """The runtime creates only what a Result or an Assign needs; the rest of the file is dead."""
    for node in graph.nodes:
        node.reachable = node.type == "Parameter"
    pending = [*graph.results, *graph.sinks]
    while pending:
        node = pending.pop()
        if not node.reachable or node.type in ("Result", "Assign"):
            node.reachable = True
            pending += [i.node for i in node.inputs if not i.node.reachable]


def _position(ports: list[RawPort], port_id: int) -> int | None:
    return next((k for k, p in enumerate(ports) if p.id == port_id), None)


def _natural(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise AttributeInvalid(f"attribute {key} must be a non-negative integer, found '{text[:40]}'")
    return int(text)
