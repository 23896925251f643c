"""Detects layers that only one of two models has, between layers that both models have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irload.comparison.layer_error import LayerError
from irload.graph import Node, Output

__all__ = ["Gaps"]


class Gaps:
    """Finds the layers between two layers of one model that are neighbours in the other."""

    def __init__(
        self, partners: Mapping[Node, Node], names: Sequence[Mapping[Node, str]], sides: Sequence[str]
    ) -> None:
        """`partners`: node → its match in the other model. `names`, `sides`: for this model, then for the other one."""
        self._partners = partners
        self._inverse = {v: k for k, v in partners.items()}
        self._names = names
        self._sides = sides
        self._reported: set[Node] = set()

    def reads_the_same(self, node: Node) -> bool:
        """Whether matching nodes feed a node and its partner, in the same order."""
        other = self._partners.get(node)
        return (
            other is not None
            and len(node.inputs) == len(other.inputs)
            and all(
                self._partners.get(i.node) is j.node and i.index == j.index
                for i, j in zip(node.inputs, other.inputs, strict=True)
            )
        )

    def before(self, node: Node, path: str) -> list[LayerError]:
        """Return the layers without a partner that feed a node or its partner, each once. `path`: the body's."""
        other = self._partners.get(node)
        if other is None:
            return []
        entries: list[LayerError] = []
        lone: tuple[set[Node], set[Node]] = set(), set()
        ends: list[Output] = []
        for start, matched, which in ((node, self._partners, 0), (other, self._inverse, 1)):
            for source in start.inputs:
                gap, frontier = _predecessors(source, lambda n, matched=matched: n in matched)
                lone[which].update(gap)
                ends += frontier if gap and which == 0 else []
                ends += [o for e in frontier for o in self._inverse[e.node].outputs[:1]] if gap and which == 1 else []
        after = self._names[0][node]
        before = next((self._names[0][e.node] for e in ends if e.node.type != "Const"), "the inputs")
        for which in (0, 1):
            shown = sorted((n for n in lone[which] if n.type != "Const"), key=lambda n: (len(n.inputs) == 0, n.id))
            for layer in shown:
                if layer not in self._reported:
                    self._reported.add(layer)
                    problem = f"between {before} and {after}, without partner in {self._sides[1 - which]}"
                    element = layer.outputs[0].type.element.name if layer.outputs else ""
                    name = path + self._names[which][layer]
                    entries.append(LayerError(name, layer.type, layer.id, element, (), 0.0, None, None, problem))
        return entries

    def before_result(self, result: Node, path: str) -> list[LayerError]:
        """Return the layers without a partner that feed the result of a body; else the result if its sources differ."""
        entries = self.before(result, path)
        other = self._partners.get(result)
        if not entries and other is not None and not self.reads_the_same(result):
            ours, theirs = self._names[0][result.inputs[0].node], self._names[1][other.inputs[0].node]
            element = result.outputs[0].type.element.name if result.outputs else ""
            problem = f"reads {ours} in {self._sides[0]}, {theirs} in {self._sides[1]}"
            name = path + self._names[0][result]
            entries.append(LayerError(name, "Result", result.id, element, (), 0.0, None, None, problem))
        return entries


def _predecessors(start: Output, stops: Callable[[Node], bool]) -> tuple[list[Node], list[Output]]:
    """Return the predecessors of an output up to the first accepted nodes, and the outputs of these nodes."""
    gap: list[Node] = []
    frontier: list[Output] = []
    pending, seen = [start], {start.node}
    while pending:
        output = pending.pop()
        if stops(output.node):
            frontier.append(output)
            continue
        gap.append(output.node)
        for source in output.node.inputs:
            if source.node not in seen:
                seen.add(source.node)
                pending.append(source)
    return gap, frontier
