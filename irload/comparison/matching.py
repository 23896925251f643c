"""Which layers of two models stand for each other: those of one name, then those in the same place."""

from __future__ import annotations

from irload.graph import Graph, Node
from irload.observation import labels

__all__ = ["match"]


def match(a: Graph, b: Graph) -> dict[Node, Node]:
    """The nodes of `a` by those of `b`.

    Layers match by name. The others match in order of execution where the type agrees and what feeds
    them matches, Parameters by their position, constants by the port that takes them. Bodies of layers that match are
    matched as well.
    """
    found: dict[Node, Node] = {}
    pending = [(a, b)]
    while pending:
        ours, theirs = pending.pop()
        matched = _match_graph(ours, theirs)
        found.update({v: k for k, v in matched.items()})
        for node, name, body in ours.subgraphs():
            other = matched.get(node)
            inner = None if other is None else getattr(getattr(other.op, name, None), "body", None)
            if isinstance(inner, Graph):
                pending.append((body, inner))
    return found


def _match_graph(a: Graph, b: Graph) -> dict[Node, Node]:
    """The nodes of `b` by those of `a`, without bodies."""
    ours, theirs = labels(a), labels(b)
    named = {(theirs[n], _role(n)): n for n in b.nodes}
    found = {n: named[ours[n], _role(n)] for n in a.nodes if (ours[n], _role(n)) in named}
    taken = set(found.values())
    for p, q in zip(a.parameters, b.parameters, strict=False):
        if p not in found and q not in taken:
            found[p] = q
            taken.add(q)
    waiting: dict[str, list[Node]] = {}
    for node in b.nodes:
        if node not in taken and node.type != "Const":
            waiting.setdefault(node.type, []).append(node)
    for node in a.nodes:
        if node.type == "Const":
            continue
        if node not in found:
            place = next((n for n in waiting.get(node.type, ()) if _same_place(node, n, found)), None)
            if place is None:
                continue
            found[node] = place
            waiting[node.type].remove(place)
        for i, j in zip(node.inputs, found[node].inputs, strict=False):
            if i.node.type == j.node.type == "Const" and i.node not in found and j.node not in taken:
                found[i.node] = j.node
                taken.add(j.node)
    return found


def _role(node: Node) -> str:
    """What a layer of the same name must share: computing may be of another type, which is a fault to be named."""
    return node.type if node.type in ("Const", "Parameter", "Result") else "computes"


def _same_place(a: Node, b: Node, found: dict[Node, Node]) -> bool:
    if len(a.inputs) != len(b.inputs) or len(a.outputs) != len(b.outputs):
        return False
    for i, j in zip(a.inputs, b.inputs, strict=True):
        if i.node.type == j.node.type == "Const":
            if i.type.shape != j.type.shape or found.get(i.node, j.node) is not j.node:
                return False
        elif found.get(i.node) is not j.node or i.index != j.index:
            return False
    return True
