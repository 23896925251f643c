"""Constants that one model stores in another float type, behind a Convert that gives the type of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irload.comparison.edits import Change
from irload.comparison.weights import ValueChange, is_rounding, value_change
from irload.core.tensor import Array
from irload.graph import Graph, Node

__all__ = ["Recast", "recasts"]


@dataclass(frozen=True, slots=True, eq=False)
class Recast:
    """`a` and `b` stand for each other: one is a Const, the other a Convert of one, which is `absorbed`."""

    a: Node
    b: Node
    absorbed: tuple[Node, ...]

    def change(self) -> Change:
        """How the constant is stored, and how far the values are apart."""
        a, b = _stored(self.a), _stored(self.b)
        old, new = _values(a), _values(b)
        found = value_change(old, new)
        wide, narrow = (old, new) if b is not self.b else (new, old)
        fits = found is None or is_rounding(wide, narrow)
        kinds = str(a.op.attributes["element_type"]), str(b.op.attributes["element_type"])
        return Change("storage" if fits else "values", "", *kinds, found or ValueChange(old.size, 0, 0.0, 0.0))


def recasts(a: Graph, b: Graph, to_a: Mapping[Node, Node]) -> list[Recast]:
    """The constants of one graph that are a Convert of a constant in the other. `to_a` says which layers match."""
    to_b = {v: k for k, v in to_a.items()}
    found = [Recast(c, v, (v.inputs[0].node,)) for v, c in _pairs(b, a, to_a)]
    return found + [Recast(v, c, (v.inputs[0].node,)) for v, c in _pairs(a, b, to_b)]


def _pairs(packed: Graph, plain: Graph, partner: Mapping[Node, Node]) -> list[tuple[Node, Node]]:
    """Converts of constants, unmatched, with the constant of the other graph that each stands for."""
    matched = set(partner.values())
    free = {n.name: n for n in plain.nodes if n.type == "Const" and n not in matched and n.name}
    fed: dict[Node, Node] = {}
    for node in packed.nodes:
        other = partner.get(node)
        for i, j in zip(node.inputs, other.inputs if other is not None else (), strict=False):
            if _is_convert(i.node) and j.node.type == "Const":
                fed.setdefault(i.node, j.node)
    found: list[tuple[Node, Node]] = []
    used: set[Node] = set()
    for node in packed.nodes:
        if node in partner or not _is_convert(node):
            continue
        constant = node.inputs[0].node
        other = partner.get(constant) or free.get(node.name) or fed.get(node)
        if (
            other is None
            or other.type != "Const"
            or other in used
            or (other in matched and partner.get(constant) is not other)
        ):
            continue
        if other.op.attributes.get("element_type") is node.op.attributes.get("destination_type"):
            used.add(other)
            found.append((node, other))
    return found


def _is_convert(node: Node) -> bool:
    return node.type == "Convert" and len(node.inputs) == 1 and node.inputs[0].node.type == "Const"


def _stored(node: Node) -> Node:
    return node if node.type == "Const" else node.inputs[0].node


def _values(node: Node) -> Array:
    return node.op.attributes["data"]()
