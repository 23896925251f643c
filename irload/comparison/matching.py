"""Matches the layers of two models by structure, so that names and file order do not matter."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from irload.comparison.anchors import body_ends, model_ends
from irload.comparison.colours import Colours, Palette, Side
from irload.comparison.criteria import CRITERIA, exact, role, similar, typed
from irload.core.subgraph import Subgraph
from irload.graph import Graph, Node

__all__ = ["match"]

ROUNDS = 5
"""Number of edges searched from a node if all layers before or after it differ."""


def match(a: Graph, b: Graph) -> dict[Node, Node]:
    """Return node of `b` → its match in `a`, including bodies.

    Inputs and outputs are matched first: by common tensor names, else by their neighbourhood, else by position; in
    bodies by the ports of the enclosing layer. Then two nodes match if all their predecessors, all their successors, or
    all nodes within a few edges are equal. Each match distinguishes more nodes. This is repeated with looser `CRITERIA`
    of equality: type, attributes and content; type and attributes; type; any type. If several nodes are equal by all
    criteria, names decide, then file order.
    """
    partners: dict[Node, Node] = {}
    pending: list[tuple[Graph, Graph, Iterable[tuple[Node, Node]]]] = [(a, b, model_ends(a, b))]
    while pending:
        ours, theirs, ends = pending.pop()
        matched = _Matching(ours, theirs, ends).pairs
        partners.update({v: k for k, v in matched.items()})
        for node, name, body in ours.subgraphs():
            other = matched.get(node)
            inner = None if other is None else getattr(other.op, name, None)
            if isinstance(inner, Subgraph) and isinstance(inner.body, Graph):
                pending.append((body, inner.body, body_ends(getattr(node.op, name), inner)))
    return partners


class _Matching:
    """Node of `a` → its match in `b`, without bodies."""

    def __init__(self, a: Graph, b: Graph, ends: Iterable[tuple[Node, Node]]) -> None:
        palette = Palette()
        self.a, self.b = Side(a, palette), Side(b, palette)
        self.pairs: dict[Node, Node] = {}
        for p, q in ends:
            self.add(self.a.at[p], self.b.at[q])
        self.ends(a, b)
        for criterion in CRITERIA[:-1]:
            ours, theirs = self.a.initial(criterion), self.b.initial(criterion)
            while self.refine(ours, theirs) or self.in_place(ours, theirs) or self.tie(ours, theirs):
                pass
        while self.nearest():
            pass
        self.by_name(typed)
        self.replaced()
        self.by_name(role)

    def add(self, k: int, m: int) -> bool:
        """Match two nodes that are both free."""
        if self.a.pins[k] is not None or self.b.pins[m] is not None:
            return False
        self.a.pins[k] = self.b.pins[m] = len(self.pairs)
        self.pairs[self.a.nodes[k]] = self.b.nodes[m]
        return True

    # -- inputs and outputs --------------------------------------------------------------------------------------------

    def ends(self, a: Graph, b: Graph) -> None:
        """Match the remaining inputs and outputs: by neighbourhood, else by position.

        An edit may be next to any of them, so they are matched even if their neighbourhoods differ.
        """
        for ours, theirs in ((a.parameters, b.parameters), (a.results, b.results)):
            for criterion in (exact, similar):
                colours = [side.initial(criterion) for side in (self.a, self.b)]
                if theirs is b.results:
                    self.unique(self.a.predecessors(colours[0]), self.b.predecessors(colours[1]), ours)
                around = [side.neighbourhoods(c, ROUNDS) for side, c in zip((self.a, self.b), colours, strict=True)]
                for p, q in zip(*map(reversed, around), strict=True):
                    self.unique(p, q, ours)
            for is_alike in (True, False):
                left = [n for n in ours if self.a.pins[self.a.at[n]] is None]
                free = [n for n in theirs if self.b.pins[self.b.at[n]] is None]
                for node in left:
                    other = next((n for n in free if not is_alike or _type(n) == _type(node)), None)
                    if other is not None:
                        free.remove(other)
                        self.add(self.a.at[node], self.b.at[other])

    # -- colours -------------------------------------------------------------------------------------------------------

    def refine(self, ours: Colours, theirs: Colours) -> bool:
        """Match nodes whose colour is unique in both graphs."""
        before = len(self.pairs)
        self.unique(self.a.predecessors(ours), self.b.predecessors(theirs))
        self.unique(self.a.successors(ours), self.b.successors(theirs))
        if len(self.pairs) == before:
            around = self.a.neighbourhoods(ours, ROUNDS), self.b.neighbourhoods(theirs, ROUNDS)
            for p, q in reversed(list(zip(*around, strict=True))[1:]):
                self.unique(p, q)
        return len(self.pairs) > before

    def unique(self, ours: Colours, theirs: Colours, among: Iterable[Node] | None = None) -> None:
        """Match the free nodes whose colour no other free node of their graph has."""
        by_colour = _single(theirs, self.b.pins)
        wanted = None if among is None else {self.a.at[n] for n in among}
        for colour, k in _single(ours, self.a.pins).items():
            other = by_colour.get(colour)
            if other is not None and (wanted is None or k in wanted):
                self.add(k, other)

    # -- ties ----------------------------------------------------------------------------------------------------------

    def in_place(self, ours: Colours, theirs: Colours) -> bool:
        """Match equal nodes whose inputs match, in order of execution; constants match together with their readers."""
        successors = self.a.successors(ours), self.b.successors(theirs)
        count = len(self.pairs)
        for k, inputs in enumerate(self.a.sources):
            if self.a.pins[k] is not None or not inputs:
                continue
            first = next((s for s, _ in inputs if self.a.pins[s] is not None), None)
            if first is None:
                continue
            partner = self.b.at[self.pairs[self.a.nodes[first]]]
            fitting = [
                m
                for m in dict.fromkeys(r for r, _, _ in self.b.readers[partner])
                if self.b.pins[m] is None and theirs[m] == ours[k] and self.fits(k, m, ours, theirs)
            ]
            if fitting:
                name = self.a.nodes[k].name
                other = max(fitting, key=lambda m: (successors[1][m] == successors[0][k], self.b.nodes[m].name == name))
                self.add(k, other)
                for (s, _), (t, _) in zip(inputs, self.b.sources[other], strict=True):
                    self.add(s, t)
        return len(self.pairs) > count

    def fits(self, k: int, m: int, ours: Colours, theirs: Colours) -> bool:
        """True if each pair of inputs of two nodes matches, or consists of equal constants without a match."""
        if len(self.a.sources[k]) != len(self.b.sources[m]):
            return False
        for (s, i), (t, j) in zip(self.a.sources[k], self.b.sources[m], strict=True):
            pins = self.a.pins[s], self.b.pins[t]
            free = pins == (None, None) and not self.a.sources[s] and not self.b.sources[t] and ours[s] == theirs[t]
            if i != j or not (free or (pins[0] is not None and pins[0] == pins[1])):
                return False
        return True

    def tie(self, ours: Colours, theirs: Colours) -> bool:
        """Match one of several nodes with equal predecessors and successors."""
        colours = [
            list(zip(side.predecessors(initial), side.successors(initial), strict=True))
            for side, initial in ((self.a, ours), (self.b, theirs))
        ]
        groups: dict[tuple[int, int], list[int]] = {}
        for m, colour in enumerate(colours[1]):
            if self.b.pins[m] is None:
                groups.setdefault(colour, []).append(m)
        for k, colour in enumerate(colours[0]):
            if self.a.pins[k] is None and colour in groups:
                name = self.a.nodes[k].name
                return self.add(k, max(groups[colour], key=lambda m: self.b.nodes[m].name == name))
        return False

    # -- edited layers -----------------------------------------------------------------------------------------------

    def nearest(self) -> bool:
        """Match nodes of one type that share most neighbours, at least one, at the same ports."""
        ranked: list[tuple[tuple[bool, int, bool, bool], int, int]] = []
        for k, node in enumerate(self.a.nodes):
            if self.a.pins[k] is None:
                for m, count in self.shared(k).items():
                    other = self.b.nodes[m]
                    if other.type == node.type:
                        alike = self.a.initial(similar)[k] == self.b.initial(similar)[m]
                        ranked.append(((node.name == other.name, count, alike, _type(node) == _type(other)), k, m))
        ranked.sort(key=lambda entry: entry[0], reverse=True)
        return sum(self.add(k, m) for _, k, m in ranked) > 0

    def shared(self, k: int) -> dict[int, int]:
        """The free nodes of the other graph that share neighbours with a node, and how many they share."""
        counts: dict[int, int] = {}
        for port, (s, index) in enumerate(self.a.sources[k]):
            if self.a.pins[s] is not None:
                for m, p, i in self.b.readers[self.b.at[self.pairs[self.a.nodes[s]]]]:
                    if (p, i) == (port, index):
                        counts[m] = counts.get(m, 0) + 1
        for r, port, index in self.a.readers[k]:
            if self.a.pins[r] is not None:
                inputs = self.b.sources[self.b.at[self.pairs[self.a.nodes[r]]]]
                if port < len(inputs) and inputs[port][1] == index:
                    counts[inputs[port][0]] = counts.get(inputs[port][0], 0) + 1
        return {m: count for m, count in counts.items() if self.b.pins[m] is None}

    def replaced(self) -> None:
        """Match layers of different types between the same neighbours."""
        ours, theirs = self.a.initial(role), self.b.initial(role)
        keys, other_keys = [(s.predecessors(f), s.successors(f)) for s, f in ((self.a, ours), (self.b, theirs))]
        free = {key: m for m, key in enumerate(zip(*other_keys, strict=True)) if self.b.pins[m] is None}
        for k, key in enumerate(zip(*keys, strict=True)):
            other = free.get(key)
            if self.a.pins[k] is None and other is not None:
                self.add(k, other)

    def by_name(self, criterion: Callable[[Node], Hashable]) -> None:
        """Match remaining nodes by name and criterion, if both are unique in their graphs."""
        named = _named(self.b, criterion)
        for key, k in _named(self.a, criterion).items():
            other = named.get(key)
            if other is not None:
                self.add(k, other)


def _single(colours: Colours, pins: list[int | None]) -> Mapping[int, int]:
    """Return the unmatched node of each colour that only one unmatched node has."""
    by_colour: dict[int, int | None] = {}
    for k, colour in enumerate(colours):
        if pins[k] is None:
            by_colour[colour] = None if colour in by_colour else k
    return {colour: k for colour, k in by_colour.items() if k is not None}


def _named(side: Side, criterion: Callable[[Node], Hashable]) -> dict[tuple[str, Hashable], int]:
    """The free nodes by name and criterion, where these are unique."""
    by_key: dict[tuple[str, Hashable], int | None] = {}
    for k, node in enumerate(side.nodes):
        if node.name:
            key = node.name, criterion(node)
            by_key[key] = None if key in by_key else k
    return {key: k for key, k in by_key.items() if k is not None and side.pins[k] is None}


def _type(node: Node) -> list[tuple[object, object]]:
    return [(o.type.element, o.type.shape) for o in node.outputs]
