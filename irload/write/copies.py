"""Copies graphs, for functions that return a changed model and leave the original unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar, cast

from irload.graph import Graph, Node, Output, subgraphs

G = TypeVar("G", bound=Graph)

__all__ = ["copied"]


def copied(graph: G) -> tuple[G, dict[Node, Node], dict[Output, Output]]:
    """A copy of a graph with its bodies, and the copies of the outer graph's nodes and outputs.

    Attributes, constants and metadata are shared.
    """
    nodes = {node: _copied_node(node) for node in graph.nodes}
    outputs: dict[Output, Output] = {}
    for node, copy in nodes.items():
        copy.outputs = [replace(o, node=copy) for o in node.outputs]
        outputs.update(zip(node.outputs, copy.outputs, strict=True))
    for copy in nodes.values():
        copy.inputs = [outputs[i] for i in copy.inputs]
    changed = replace(
        graph,
        nodes=list(nodes.values()),
        parameters=[nodes[n] for n in graph.parameters],
        results=[nodes[n] for n in graph.results],
        sinks=[nodes[n] for n in graph.sinks],
    )
    return changed, nodes, outputs


def _copied_node(node: Node) -> Node:
    copy = replace(node)
    bodies: dict[str, Any] = {
        name: replace(s, body=copied(cast(Graph, s.body))[0]) for name, s in subgraphs(node).items()
    }
    if bodies:
        copy.op = type(node.op)(**(node.op.attributes | bodies))
    return copy
