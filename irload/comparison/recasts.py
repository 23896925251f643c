"""Constants that one model stores compressed, followed by layers that decompress them to the other model's type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from irload.comparison.constants import constants_of, fold
from irload.comparison.edits import Change
from irload.comparison.tolerances import is_constant_expression
from irload.comparison.weights import ValueChange, is_rounding, value_change
from irload.core.element import f16
from irload.graph import Graph, Node, ancestors

__all__ = ["Recast", "recasts"]

LOSS = 0.2
"""Upper bound of the relative change of values by compression to few bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Recast:
    """A pair `a`, `b` with equal values: one is a Const, the other decompresses constants (`absorbed`)."""

    a: Node
    b: Node
    absorbed: tuple[Node, ...]

    def change(self) -> Change:
        """Describe the storage of the constant, and the distance of the values."""
        a, b = _stored(self.a), _stored(self.b)
        old, new = fold(self.a)[0], fold(self.b)[0]
        distance = value_change(old, new)
        wide, narrow = (old, new) if b is not self.b else (new, old)
        is_half = (
            narrow.size == 0 or _stored(self.b if b is not self.b else self.a).op.attributes["element_type"] is f16
        )
        with np.errstate(all="ignore"):
            rounded = is_half and is_rounding(wide, narrow.astype(np.float16))
        lost = distance.relative if distance is not None else 0.0
        # f16 must equal the rounded values. Integers of few bits lose more: the change must be below LOSS.
        fits = distance is None or rounded or (not is_half and lost is not None and lost < LOSS)
        kinds = str(a.op.attributes["element_type"]), str(b.op.attributes["element_type"])
        return Change("storage" if fits else "values", "", *kinds, distance or ValueChange(old.size, 0, 0.0, 0.0))


def recasts(a: Graph, b: Graph, to_a: Mapping[Node, Node]) -> list[Recast]:
    """Find the constants of one graph that the other graph decompresses. `to_a` maps the matched layers."""
    to_b = {v: k for k, v in to_a.items()}
    compressed = [Recast(c, v, _absorbed(v)) for v, c in _pairs(b, a, to_a)]
    return compressed + [Recast(v, c, _absorbed(v)) for v, c in _pairs(a, b, to_b)]


def _pairs(packed: Graph, plain: Graph, partner: Mapping[Node, Node]) -> list[tuple[Node, Node]]:
    """Return unmatched roots of decompressed constants, with the corresponding constant of the other graph."""
    matched = set(partner.values())
    free = {n.name: n for n in plain.nodes if n.type == "Const" and n not in matched and n.name}
    fed: dict[Node, Node] = {}
    for node in packed.nodes:
        other = partner.get(node)
        for i, j in zip(node.inputs, other.inputs if other is not None else (), strict=False):
            if _decompresses(i.node) and j.node.type == "Const":
                fed.setdefault(i.node, j.node)
    pairs: list[tuple[Node, Node]] = []
    used: set[Node] = set()
    for node in packed.nodes:
        if node in partner or not _decompresses(node):
            continue
        constant = _stored(node)
        other = partner.get(constant) or free.get(node.name) or fed.get(node)
        if (
            other is None
            or other.type != "Const"
            or other in used
            or (other in matched and partner.get(constant) is not other)
        ):
            continue
        old, new = other.outputs[0].type, node.outputs[0].type
        if (old.element, old.shape) == (new.element, new.shape) and _element(constant) is not _element(other):
            used.add(other)
            pairs.append((node, other))
    return pairs


def _absorbed(node: Node) -> tuple[Node, ...]:
    return tuple(n for n in ancestors([node]) if n is not node)


def _decompresses(node: Node) -> bool:
    return node.type != "Const" and is_constant_expression(node)


def _element(constant: Node) -> object:
    return constant.op.attributes.get("element_type")


def _stored(node: Node) -> Node:
    """Return the largest constant that a node depends on."""
    return max(constants_of(node), key=lambda n: n.outputs[0].type.shape.size.lo)
