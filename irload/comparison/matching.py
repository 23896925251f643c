"""Which layers of two models stand for each other: those of one name, then those in the same place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from irload.graph import Graph, Node

__all__ = ["match"]


def match(a: Graph, b: Graph, *, loosely: bool = False) -> dict[Node, Node]:
    """The nodes of `a` by those of `b`.

    Layers match by a name that is unique in both graphs. The others match in order of execution where the type agrees
    and what feeds them matches, Parameters by their position, constants by the port that takes them; what then remains
    of one name and type in equal numbers matches in order. `loosely`: one input or consumer that matches is enough, so
    that layers without common names match around those that were added, removed or wired otherwise. Bodies of layers
    that match are matched as well.
    """
    found: dict[Node, Node] = {}
    pending = [(a, b)]
    while pending:
        ours, theirs = pending.pop()
        matched = _Matching(ours, theirs, loosely).pairs
        found.update({v: k for k, v in matched.items()})
        for node, name, body in ours.subgraphs():
            other = matched.get(node)
            inner = None if other is None else getattr(getattr(other.op, name, None), "body", None)
            if isinstance(inner, Graph):
                pending.append((body, inner))
    return found


class _Matching:
    """The nodes of `b` by those of `a`, without bodies."""

    def __init__(self, a: Graph, b: Graph, loosely: bool) -> None:
        self.a, self.b = a, b
        self.pairs: dict[Node, Node] = {}
        self.taken: set[Node] = set()
        named = _unique_names(b)
        for key, node in _unique_names(a).items():
            self.add(node, named.get(key))
        for p, q in zip(a.parameters, b.parameters, strict=False):
            self.add(p, q)
        self.by_place()
        if loosely:
            for p, q in zip(a.results, b.results, strict=False):
                self.add(p, q)
            self.by_neighbours()
        self.by_order()

    def add(self, node: Node, other: Node | None) -> bool:
        """Match two nodes that are both free."""
        if other is None or node in self.pairs or other in self.taken:
            return False
        self.pairs[node] = other
        self.taken.add(other)
        return True

    def constants(self, node: Node) -> None:
        """Match the constants that two layers take at the same port."""
        for i, j in zip(node.inputs, self.pairs[node].inputs, strict=False):
            if i.node.type == j.node.type == "Const":
                self.add(i.node, j.node)

    def by_place(self) -> None:
        """In order of execution, layers of one type whose inputs match; of several the one of the same name."""
        waiting: dict[object, list[Node]] = {}
        for node in self.b.nodes:
            if node not in self.taken and node.type != "Const":
                waiting.setdefault(_place(node, [i.node for i in node.inputs]), []).append(node)
        for node in self.a.nodes:
            if node.type == "Const":
                continue
            if node not in self.pairs:
                place = waiting.get(_place(node, [self.pairs.get(i.node) for i in node.inputs]), [])
                fitting = [n for n in place if self.share_constants(node, n)]
                if not fitting:
                    continue
                other = next((n for n in fitting if n.name == node.name), fitting[0])
                self.add(node, other)
                place.remove(other)
            self.constants(node)

    def share_constants(self, a: Node, b: Node) -> bool:
        """Whether no constant that either takes is matched with another one."""
        pairs = [(i.node, j.node) for i, j in zip(a.inputs, b.inputs, strict=True) if i.node.type == "Const"]
        return all(self.pairs.get(i, j) is j for i, j in pairs)

    def by_neighbours(self) -> None:
        """From layers that match to those that feed them and that they feed, back and forth until nothing is left."""
        ours, theirs = _consumers(self.a), _consumers(self.b)
        changed = True
        while changed:
            changed = False
            for order in (self.a.nodes, self.a.nodes[::-1]):
                for node in order:
                    if node not in self.pairs and node.type != "Const":
                        changed |= self.add(node, self.nearest(node, ours, theirs))
                    if node in self.pairs:
                        self.constants(node)

    def nearest(self, node: Node, ours: _Consumers, theirs: _Consumers) -> Node | None:
        """The free node of the other graph, of the same type, that shares most inputs and consumers; at least one."""
        shared: Counter[Node] = Counter()
        for k, source in enumerate(node.inputs):
            other = self.pairs.get(source.node)
            shared.update(
                n for n, port, i in theirs.get(other, ()) if port == k and i == source.index
            ) if other else None
        for consumer, port, index in ours.get(node, ()):
            other = self.pairs.get(consumer)
            if other is not None and port < len(other.inputs) and other.inputs[port].index == index:
                shared[other.inputs[port].node] += 1
        free = [n for n in shared if n not in self.taken and n.type == node.type and len(n.inputs) == len(node.inputs)]
        return max(free, key=lambda n: (shared[n], _likeness(node, n)), default=None)

    def by_order(self) -> None:
        """What remains of one name and type, where both graphs have as many of it."""
        ours, theirs = (_grouped(n for n in g.nodes if n not in gone) for g, gone in self._rest())
        for key, nodes in ours.items():
            others = theirs.get(key, ())
            if len(nodes) == len(others):
                for node, other in zip(nodes, others, strict=True):
                    self.add(node, other)

    def _rest(self) -> Iterator[tuple[Graph, set[Node]]]:
        yield self.a, set(self.pairs)
        yield self.b, self.taken


_Consumers = dict[Node, list[tuple[Node, int, int]]]
"""By node: who takes its outputs, at which port, and which of the outputs."""


def _consumers(graph: Graph) -> _Consumers:
    found: _Consumers = {}
    for node in graph.nodes:
        for k, source in enumerate(node.inputs):
            found.setdefault(source.node, []).append((node, k, source.index))
    return found


def _unique_names(graph: Graph) -> dict[tuple[str, str], Node]:
    """The nodes whose name no other of their role has."""
    grouped: dict[tuple[str, str], list[Node]] = {}
    for node in graph.nodes:
        if node.name:
            grouped.setdefault((node.name, _role(node)), []).append(node)
    return {key: nodes[0] for key, nodes in grouped.items() if len(nodes) == 1}


def _grouped(nodes: Iterable[Node]) -> dict[tuple[str, str], list[Node]]:
    found: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        found.setdefault((node.name, node.type), []).append(node)
    return found


def _role(node: Node) -> str:
    """What a layer of the same name must share: computing may be of another type, which is a fault to be named."""
    return node.type if node.type in ("Const", "Parameter", "Result") else "computes"


def _place(node: Node, sources: Sequence[Node | None]) -> object:
    """What layers in the same place have in common; `sources` are the nodes that feed it, those of the other graph."""
    inputs = [
        (str(i.type.shape) if i.node.type == "Const" else source, i.index)
        for i, source in zip(node.inputs, sources, strict=True)
    ]
    return node.type, len(node.outputs), *inputs


def _likeness(a: Node, b: Node) -> tuple[bool, bool]:
    """Whether two layers share their name, and the shapes of their outputs."""
    shapes: list[Sequence[object]] = [[o.type.shape for o in n.outputs] for n in (a, b)]
    return a.name == b.name, shapes[0] == shapes[1]
