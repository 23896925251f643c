"""Colours of the nodes of two graphs: nodes of one colour have equal predecessors, successors or neighbourhoods.

The refinement is Weisfeiler and Lehman's, on directed graphs with numbered ports. A pair of matched nodes has
a colour that no other node has, so each match distinguishes more nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from irload.graph import Graph, Node

__all__ = ["Colours", "Palette", "Side"]

Colours = list[int]
"""The colour of each node, by its position in the graph."""


class Palette:
    """Gives equal keys the same number, in both graphs."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def __call__(self, key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known))


class Side:
    """One of the two graphs, with its edges by position."""

    def __init__(self, graph: Graph, palette: Palette) -> None:
        self.nodes: Sequence[Node] = graph.nodes
        self.at = {node: k for k, node in enumerate(graph.nodes)}
        self.sources = [[(self.at[i.node], i.index) for i in node.inputs] for node in graph.nodes]
        self.readers: list[list[tuple[int, int, int]]] = [[] for _ in graph.nodes]
        """For each node, its readers: (position of the reader, its input port, index of the output it reads)."""
        for k, inputs in enumerate(self.sources):
            for port, (source, index) in enumerate(inputs):
                self.readers[source].append((k, port, index))
        self.pins: list[int | None] = [None] * len(graph.nodes)
        """For each node, the number of its match, None for a free node."""
        self._palette = palette
        self._initial: dict[Callable[[Node], Hashable], Colours] = {}

    def initial(self, criterion: Callable[[Node], Hashable]) -> Colours:
        """Return the colours of single nodes by a criterion, without neighbours."""
        colours = self._initial.get(criterion)
        if colours is None:
            colours = self._initial[criterion] = [self._palette(criterion(node)) for node in self.nodes]
        return colours

    def predecessors(self, initial: Colours) -> Colours:
        """Return colours of all predecessors, back to the matches and the inputs."""
        colours: Colours = [0] * len(self.nodes)
        for k, inputs in enumerate(self.sources):
            colours[k] = self._colour(k, "predecessors", initial[k], [(colours[s], index) for s, index in inputs])
        return colours

    def successors(self, initial: Colours) -> Colours:
        """Return colours of all successors, up to the matches and the outputs."""
        colours: Colours = [0] * len(self.nodes)
        for k in reversed(range(len(self.nodes))):
            readers = sorted((colours[r], port, index) for r, port, index in self.readers[k])
            colours[k] = self._colour(k, "successors", initial[k], readers)
        return colours

    def neighbourhoods(self, initial: Colours, rounds: int) -> list[Colours]:
        """Return colours of the neighbourhoods of 1, 2, … edges."""
        by_distance: list[Colours] = []
        last = [self._colour(k, "self", colour, ()) for k, colour in enumerate(initial)]
        for _ in range(rounds):
            last = [
                self._colour(
                    k,
                    "neighbourhood",
                    last[k],
                    [(last[s], index) for s, index in inputs],
                    sorted((last[r], port, index) for r, port, index in self.readers[k]),
                )
                for k, inputs in enumerate(self.sources)
            ]
            by_distance.append(last)
        return by_distance

    def _colour(self, k: int, kind: str, own: int, *neighbours: Sequence[object]) -> int:
        pin = self.pins[k]
        return self._palette(("pin", pin) if pin is not None else (kind, own, *map(tuple, neighbours)))
