"""Copies of graphs: nodes and bodies are copied, operations and constants are shared, as they are immutable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from irload.core.subgraph import Subgraph
from irload.graph import Graph, Node, Output, subgraphs
from irload.model import Model

__all__ = ["clone", "collect"]


def clone(model: Model, copied: dict[Node, Node] | None = None) -> Model:
    """A copy of the model whose graph can be edited independently. `copied` receives the copy of each node."""
    nodes = _nodes(model.nodes, copied)
    return replace(
        model,
        nodes=[nodes[n] for n in model.nodes],
        parameters=[nodes[n] for n in model.parameters],
        results=[nodes[n] for n in model.results],
        sinks=[nodes[n] for n in model.sinks],
        rt_info=_tree(model.rt_info),
        warnings=[*model.warnings],
        differences=[*model.differences],
        compared=[*model.compared],
        rewritten=[*model.rewritten],
    )


def _nodes(originals: list[Node], copied: dict[Node, Node] | None = None) -> dict[Node, Node]:
    nodes: dict[Node, Node] = {} if copied is None else copied
    outputs: dict[Output, Output] = {}
    for node in originals:
        copy = nodes[node] = replace(node, op=_op(node), rt_info=[*node.rt_info])
        copy.outputs = [replace(o, node=copy, rt_info=[*o.rt_info]) for o in node.outputs]
        outputs.update(zip(node.outputs, copy.outputs, strict=True))
    for node in originals:
        nodes[node].inputs = [outputs.get(i, i) for i in node.inputs]
    return nodes


def _op(node: Node) -> Any:
    """The operation, with copies of its bodies."""
    bodies = subgraphs(node)
    if not bodies:
        return node.op
    copied: dict[str, Any] = {}
    for name, subgraph in bodies.items():
        body = cast(Graph, subgraph.body)
        nodes = _nodes(body.nodes)
        graph = Graph(
            [nodes[n] for n in body.nodes],
            [nodes[n] for n in body.parameters],
            [nodes[n] for n in body.results],
            [nodes[n] for n in body.sinks],
            body.file,
        )
        copied[name] = Subgraph(graph, subgraph.inputs, subgraph.outputs, subgraph.back_edges)
    return type(node.op)(**{**node.op.attributes, **copied})


def _tree(tree: dict[str, Any]) -> dict[str, Any]:
    return {k: _tree(cast("dict[str, Any]", v)) if isinstance(v, dict) else v for k, v in tree.items()}


def collect(ends: list[Node]) -> list[Node]:
    """All nodes upstream of these, in topological order. Iterative."""
    ordered: list[Node] = []
    seen: set[Node] = set()
    for end in ends:
        stack = [(end, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                ordered.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(source.node, False) for source in reversed(node.inputs) if source.node not in seen]
    return ordered
