"""save_model: writes a Model as IR v11."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from lxml import etree

from irload.core.attribute import Attribute
from irload.core.element import dynamic
from irload.core.shape import Shape
from irload.core.subgraph import PortMap, Subgraph
from irload.errors import InputInvalid, Unsupported
from irload.graph import Graph, Node, Output, UnknownOp, ancestors, subgraphs
from irload.model import Model
from irload.read.elements import CHILDREN, TAG, Element
from irload.read.names import join_names
from irload.write.atomic import write_atomically
from irload.write.blob import Blob
from irload.write.compress import is_compressed, replacements
from irload.write.upgrade import as_v11

_TAG = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


def save_model(model: Model, path: str | Path, compress_to_fp16: bool = False) -> None:
    """Write a model as IR v11: `path` (an .xml) and the .bin beside it, each complete or not at all.

    OpenVINO loads it and computes the same. Types that IR v10 shows at inputs and outputs become Converts. Layers on
    which no output depends are dropped; ids are renumbered. `compress_to_fp16` stores f32 and f64 constants as f16
    followed by a Convert: the constants that OpenVINO's `save_model` selects, and none in a quantized model.

    Existing files are replaced without a warning, as by OpenVINO's `save_model`, including those from which `model` was
    read. Raises InputInvalid unless `path` ends in .xml, ReadError if the weights of the model are missing, Unsupported
    for an unknown operation with bodies, OSError if a file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() != ".xml":
        raise InputInvalid(f"the path of a saved model must end in .xml, found '{path.name}'")
    blob = Blob()
    model = as_v11(model)
    writer = _Writer(blob, compress_to_fp16 and not is_compressed(model))
    net = etree.Element("net", name=model.name, version="11")
    writer.graph(net, model)
    if model.rt_info:
        _metadata(etree.SubElement(net, "rt_info"), model.rt_info)
    etree.indent(net, "\t")
    # The weights first, so that an .xml is never written next to a .bin of another model.
    write_atomically(path.with_suffix(".bin"), blob.write)
    write_atomically(path, lambda stream: stream.write(etree.tostring(net, xml_declaration=True, encoding="utf-8")))


class _Writer:
    def __init__(self, blob: Blob, halve: bool) -> None:
        self.blob = blob
        self.halve = halve

    def graph(self, parent: Element, graph: Graph) -> dict[Node, int]:
        """Write the layers and edges of one graph. Returns the ids of its nodes."""
        replaced = replacements(graph) if self.halve else {}
        nodes = [n for node in _in_order(graph) for n in replaced.get(node, (node,))]
        renamed = {node.outputs[0]: pair[1].outputs[0] for node, pair in replaced.items()}
        ids = {node: k for k, node in enumerate(nodes)}
        layers, edges = etree.SubElement(parent, "layers"), etree.SubElement(parent, "edges")
        for node in nodes:
            self.layer(layers, node, ids[node])
            for k, source in enumerate(node.inputs):
                source = renamed.get(source, source)
                start = len(source.node.inputs) + source.index
                ends = {"from-layer": ids[source.node], "from-port": start, "to-layer": ids[node], "to-port": k}
                etree.SubElement(edges, "edge", {key: str(value) for key, value in ends.items()})
        return ids

    def layer(self, parent: Element, node: Node, id: int) -> None:
        layer = etree.SubElement(parent, "layer", id=str(id), name=node.name, type=node.type, version=node.op.opset)
        if node.output_names is not None:
            layer.set("output_names", join_names(node.output_names))
        attributes = self.attributes(node)
        if attributes:
            etree.SubElement(layer, "data", attributes)
        if node.rt_info:
            _runtime_attributes(etree.SubElement(layer, "rt_info"), node.rt_info)
        if node.inputs:
            _ports(etree.SubElement(layer, "input"), node.inputs, 0, named=False)
        if node.outputs:
            _ports(etree.SubElement(layer, "output"), node.outputs, len(node.inputs), named=True)
        for name, subgraph in subgraphs(node).items():
            self.body(layer, node, name, subgraph)

    def attributes(self, node: Node) -> dict[str, str]:
        """The text of the attributes: as in the file, and values that have a text form."""
        if isinstance(node.op, UnknownOp):
            if node.op.bodies:
                fact = f"is an unknown operation with a <{node.op.bodies[0]}>, which saving would drop"
                raise Unsupported(fact, node.where(None))
            return node.op.text
        if node.type == "Const":
            return self.constant(node)
        written: dict[str, str] = {}
        for name, declaration in node.op.declared.items():
            if declaration.supplied:
                continue
            value = node.op.attributes[name]
            if declaration.xml_name in node.text or _is_present(declaration, value):
                written[declaration.xml_name] = declaration.write(value)
        return written

    def constant(self, node: Node) -> dict[str, str]:
        attributes = node.op.attributes
        offset, size = self.blob.add(attributes["data"](), attributes["element_type"])
        return {
            "element_type": attributes["element_type"].name,
            "shape": ",".join(map(str, attributes["shape"].static)),
            "offset": str(offset),
            "size": str(size),
        }

    def body(self, layer: Element, node: Node, name: str, subgraph: Subgraph) -> None:
        graph = cast(Graph, subgraph.body)
        element = etree.Element(name)
        ids = self.graph(element, graph)
        maps = etree.SubElement(layer, f"{name.removesuffix('body')}port_map")
        parameters, results = [ids[n] for n in graph.parameters], [ids[n] for n in graph.results]
        for line in subgraph.inputs:
            _map_line(maps, "input", line, 0, parameters)
        for line in subgraph.outputs:
            _map_line(maps, "output", line, len(node.inputs), results)
        if subgraph.back_edges:
            edges = etree.SubElement(layer, "back_edges")
            for result, parameter in subgraph.back_edges:
                ends = {"from-layer": str(results[result]), "to-layer": str(parameters[parameter])}
                etree.SubElement(edges, "edge", ends)
        layer.append(element)


def _in_order(graph: Graph) -> list[Node]:
    """The nodes to write: Parameters, operations, Assigns, Results, each group in graph order."""
    ends = {*graph.parameters, *graph.sinks, *graph.results}
    needed = variable_reads(graph)
    middle = [n for n in graph.nodes if n not in ends and (n.reachable or n in needed)]
    return [*graph.parameters, *middle, *graph.sinks, *graph.results]


def variable_reads(graph: Graph) -> set[Node]:
    """The ReadValues of variables that are written, and all layers before them.

    OpenVINO does not load a file that assigns a variable without a ReadValue.
    """
    written = {n.op.attributes.get("variable_id") for n in graph.sinks}
    reads = [n for n in graph.nodes if n.type == "ReadValue" and n.op.attributes.get("variable_id") in written]
    return set(ancestors(reads))


def _is_present(declaration: Attribute, value: Any) -> bool:
    """False for a value that represents an absent attribute: the attribute's rule rejects it."""
    if value is None or value == () or value is dynamic:
        return False
    return declaration.rule is None or declaration.rule(value) is None


def _ports(parent: Element, outputs: Sequence[Output], first: int, *, named: bool) -> None:
    for k, output in enumerate(outputs):
        port = etree.SubElement(parent, "port", id=str(first + k), precision=output.type.element.precision)
        if named and output.names:
            port.set("names", join_names(output.names))
        for dim in _dims(output.type.shape):
            etree.SubElement(port, "dim").text = dim  # pyrefly: ignore[bad-assignment]
        if named and output.rt_info:
            _runtime_attributes(etree.SubElement(port, "rt_info"), output.rt_info)


def _dims(shape: Shape) -> list[str]:
    """The dims as written in ports, which can express neither bounds nor a dynamic rank."""
    return [] if shape.rank is None else [str(d.lo) if d.is_static else "-1" for d in shape]


def _map_line(parent: Element, tag: str, line: PortMap, first: int, ids: Sequence[int]) -> None:
    external = -1 if line.port is None else first + line.port
    attributes: dict[str, Any] = {"external_port_id": external, "internal_layer_id": ids[line.inner]}
    if line.axis is not None:
        attributes |= {"axis": line.axis, "start": line.start, "end": line.end}
        attributes |= {"stride": line.stride, "part_size": line.part_size}
    if line.purpose:
        attributes["purpose"] = line.purpose
    etree.SubElement(parent, tag, {k: str(v) for k, v in attributes.items()})


def _runtime_attributes(parent: Element, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the rt_info of a layer or a port as read: mostly `<attribute name=… version=…/>`."""
    for entry in entries:
        attributes = {k: str(v) for k, v in entry.items() if k not in (TAG, CHILDREN)}
        child = etree.SubElement(parent, entry.get(TAG, "attribute"), attributes)
        _runtime_attributes(child, entry.get(CHILDREN, ()))


def _metadata(parent: Element, tree: Mapping[str, Any]) -> None:
    """Write the tree of rt_info. A key that is not an XML name becomes `<info name="key">`."""
    for key, value in tree.items():
        child = etree.SubElement(parent, key) if _TAG.fullmatch(key) else etree.SubElement(parent, "info", name=key)
        if isinstance(value, Mapping):
            _metadata(child, cast("Mapping[str, Any]", value))
        else:
            child.set("value", str(value))
