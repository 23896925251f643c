"""The layers of a model as plain data: graphs with their layers, and their inferred properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irload.analysis.macs import macs
from irload.core.subgraph import Subgraph
from irload.graph import Graph, Node, Output, UnknownOp
from irload.model import Model
from irload.reporting.arrays import held_constant
from irload.reporting.statistics import statistics
from irload.runtime.observation import labels
from irload.validation.declared import compare, declares_static, judge

__all__ = ["LayerIndex", "layers_of"]

LayerEntry = dict[str, Any]
_ITERATION = re.compile(r"\[\d+\]/")
LONG = 300
"""Upper bound of the characters of an attribute."""


@dataclass(slots=True)
class LayerIndex:
    """All layers (the layers of a body follow the graph that contains it), and the index of each node in the list.

    `by_name` maps an unambiguous name, prefixed by the bodies (`loop/body/add`), to a layer; `by_id` maps the path of
    bodies and the id, as findings state them.
    """

    graphs: list[LayerEntry] = field(default_factory=list[LayerEntry])
    entries: list[LayerEntry] = field(default_factory=list[LayerEntry])
    index: dict[Node, int] = field(default_factory=dict[Node, int])
    by_name: dict[str, int] = field(default_factory=dict[str, int])
    by_id: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def of_run(self, name: str) -> int | None:
        """Return the layer of an output name: `loop/body[2]/add` belongs to `add` in the body, `split:1` to `split`."""
        path = _ITERATION.sub("/", name)
        return self.by_name.get(path, self.by_name.get(path.rpartition(":")[0]))


def layers_of(model: Model, *, constants: bool) -> LayerIndex:
    """Return the layers of a model and its bodies. `constants`: read every constant for its statistics."""
    layers = LayerIndex()
    names = labels(model)
    static = declares_static(model)
    pending: list[tuple[Graph, int | None, str, str, str]] = [(model, None, "", "", "")]
    bodies: dict[int, int] = {}
    while pending:
        graph, owner, body, prefix, path = pending.pop(0)
        number = len(layers.graphs)
        bodies[id(graph)] = number
        start = len(layers.entries)
        for k, node in enumerate(graph.nodes):
            layers.index[node] = start + k
            layers.by_name[prefix + names[node]] = start + k
            layers.by_id[path.removesuffix("/"), node.id] = start + k
            layers.entries.append({"graph": number, "id": node.id, "name": node.name})
        layers.graphs.append({"owner": owner, "body": body, "start": start, "count": len(graph.nodes)})
        pending += [
            (inner, layers.index[node], name, f"{prefix}{names[node]}/{name}/", f"{path}{node.name}/{name}/")
            for node, name, inner in graph.subgraphs()
        ]
    for node, k in layers.index.items():
        layers.entries[k] |= _entry(node, layers.index, bodies, static=static, constants=constants)
    return layers


def _entry(
    node: Node, index: Mapping[Node, int], bodies: Mapping[int, int], *, static: bool, constants: bool
) -> LayerEntry:
    known = not isinstance(node.op, UnknownOp)
    entry: LayerEntry = {"type": node.type, "version": node.op.opset, "line": node.line}
    entry["attributes"] = _attributes(node)
    signature = getattr(node.op, "signature", None) if known else None
    entry["inputs"] = [
        [index[source.node], source.index, signature.name(k) if signature else f"input {k}", _declared_input(node, k)]
        for k, source in enumerate(node.inputs)
    ]
    entry["outputs"] = [_output(o, static=static) for o in node.outputs]
    if not node.reachable:
        entry["dead"] = True
    if node.type == "Const" and known:
        entry["constant"] = _constant(node, read=constants)
    else:
        cost = macs(node) if node.reachable else 0
        entry["macs"] = cost
        entry["parameters"] = sum(_parameters(i.node) for i in node.inputs)
    inside = [_body(node, name, index, bodies) for name in node.op.supplied if _is_body(node, name)] if known else []
    if inside:
        entry["bodies"] = inside
    return entry


def _attributes(node: Node) -> list[list[Any]]:
    """Return name, text and whether the file states it, in the order of the specification."""
    if isinstance(node.op, UnknownOp):
        return [[key, _short(text), True] for key, text in node.op.text.items()]
    rows: list[list[Any]] = []
    for name, declaration in node.op.declared.items():
        value = node.op.attributes[name]
        if not declaration.supplied and value is not None:
            rows.append([declaration.xml_name, _short(declaration.write(value)), declaration.xml_name in node.text])
    return rows


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}…"


def _declared_input(node: Node, index: int) -> str | None:
    """Return the declared type and shape of a port if they differ from the inferred ones."""
    declared = node.declared_inputs[index] if index < len(node.declared_inputs) else None
    return None if declared is None or judge(declared, node.inputs[index].type).fits else str(declared)


def _output(output: Output, *, static: bool) -> LayerEntry:
    tensor = output.type
    entry: LayerEntry = {"type": str(tensor), "bytes": tensor.nbytes}
    if output.names:
        entry["names"] = sorted(output.names)
    if output.declared is not None and not judge(output.declared, tensor).fits:
        entry["declared"] = str(output.declared)
        if compare(output, static_file=static):
            entry["differs"] = True
    if output.node.type != "Const" and tensor.value is not None and 0 < tensor.value.size <= 16:
        entry["value"] = " ".join(str(v) for v in tensor.value.ravel().tolist())
    return entry


def _constant(node: Node, *, read: bool) -> LayerEntry:
    attributes = node.op.attributes
    entry: LayerEntry = {"size": attributes["shape"].size.lo, "bytes": attributes["size"]}
    return entry | ({"statistics": statistics(node), **held_constant(node)} if read else {})


def _parameters(node: Node) -> int:
    """Return the number of elements of a float constant, or of a packed one before a Convert; 0 for scalars."""
    while node.type in ("Convert", "Reshape") and node.inputs:
        node = node.inputs[0].node
    if node.type != "Const" or isinstance(node.op, UnknownOp):
        return 0
    size = node.op.attributes["shape"].size.lo
    element = node.op.attributes["element_type"]
    return size if size > 1 and (element.is_float or element.name in ("i8", "u8", "i4", "u4")) else 0


def _is_body(node: Node, name: str) -> bool:
    return isinstance(getattr(getattr(node.op, name), "body", None), Graph)


def _body(node: Node, name: str, index: Mapping[Node, int], bodies: Mapping[int, int]) -> LayerEntry:
    """Return a body: its graph, and pairs of ports of the layer and layers of the body."""
    subgraph: Subgraph = getattr(node.op, name)
    body: Any = subgraph.body
    parameters, results = ([index[n] for n in nodes] for nodes in (body.parameters, body.results))
    return {
        "name": name,
        "graph": bodies[id(body)],
        "inputs": [[m.port, parameters[m.inner]] for m in subgraph.inputs if m.port is not None],
        "outputs": [[m.port, results[m.inner]] for m in subgraph.outputs if m.port is not None],
        "back": [[results[r], parameters[p]] for r, p in subgraph.back_edges],
    }
