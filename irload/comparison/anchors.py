"""Matches the inputs and the outputs of two graphs, independently of the layers between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from irload.core.subgraph import PortMap, Subgraph
from irload.graph import Graph, Node, Port
from irload.model import Model

__all__ = ["body_ends", "model_ends"]


def model_ends(a: Graph, b: Graph) -> Iterator[tuple[Node, Node]]:
    """Pairs of inputs, and of outputs, with a common tensor name; no pairs unless every input (output) is in one."""
    if isinstance(a, Model) and isinstance(b, Model):
        for ours, theirs in ((a.inputs, b.inputs), (a.outputs, b.outputs)):
            pairs = list(_by_name(ours, theirs))
            if len(pairs) == len(ours) == len(theirs):
                yield from pairs


def _by_name(ours: Sequence[Port], theirs: Sequence[Port]) -> Iterator[tuple[Node, Node]]:
    known: dict[str, set[Node]] = {}
    for port in theirs:
        for name in port.names or {port.node.name}:
            known.setdefault(name, set()).add(port.node)
    used: set[Node] = set()
    for port in ours:
        candidates = {n for name in port.names or {port.node.name} for n in known.get(name, ())} - used
        if len(candidates) == 1:
            (other,) = candidates
            used.add(other)
            yield port.node, other


def body_ends(a: Subgraph, b: Subgraph) -> Iterator[tuple[Node, Node]]:
    """Pairs of Parameters, and of Results, of two bodies that are wired to the same ports in the same way."""
    back = [dict(s.back_edges) for s in (a, b)]
    parameters = list(_unique(_wires(a.inputs), _wires(b.inputs)))
    results = list(_unique(_wires(a.outputs), _wires(b.outputs)))
    fed = dict(parameters)
    known = {j: r for r, j in back[1].items()}
    for result, parameter in back[0].items():
        other = known.get(fed.get(parameter, -1))
        if other is not None and all(result != p and other != q for p, q in results):
            results.append((result, other))
    for ours, theirs, pairs in (
        (a.body.parameters, b.body.parameters, parameters),
        (a.body.results, b.body.results, results),
    ):
        yield from ((ours[i], theirs[j]) for i, j in pairs)


def _wires(maps: Iterable[PortMap]) -> Mapping[int, Hashable]:
    """The ports that each Parameter, or Result, of a body is wired to."""
    ports: dict[int, list[Hashable]] = {}
    for line in maps:
        ports.setdefault(line.inner, []).append((line.outer, line.axis is None, line.purpose))
    return {inner: tuple(sorted(map(repr, wires))) for inner, wires in ports.items()}


def _unique(ours: Mapping[int, Hashable], theirs: Mapping[int, Hashable]) -> Iterator[tuple[int, int]]:
    """Pairs with the same wires, if the wires are unique on both sides."""
    known = {wires: k for k, wires in theirs.items() if list(theirs.values()).count(wires) == 1}
    for k, wires in ours.items():
        if wires in known and list(ours.values()).count(wires) == 1:
            yield k, known[wires]
