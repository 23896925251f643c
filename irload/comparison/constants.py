"""Compares the constants of two models: bit by bit if their types are equal, otherwise after decompression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from irload.comparison.criteria import is_constant
from irload.comparison.layer_error import LayerError
from irload.comparison.measures import identical, measure
from irload.comparison.tolerances import TYPES, is_constant_expression, tolerance
from irload.comparison.weights import is_rounding, value_change
from irload.core.op import evaluate
from irload.core.tensor import Array
from irload.graph import Node, ancestors
from irload.model import Model
from irload.runtime.observation import matches

__all__ = ["ConstantErrors", "constant_paths", "constants_of", "fold"]


class ConstantErrors:
    """The errors of the constants that differ, stored until the first reader of each constant runs."""

    def __init__(
        self, model: Model, partners: Mapping[Node, Node], paths: Mapping[Node, str], wanted: Mapping[str, float]
    ) -> None:
        """`partners`: node of `model` → its match in the other model; `paths`: names prefixed by the path of bodies."""
        self._partners = partners
        self._paths = paths
        self._wanted = wanted
        self._compared: set[Node] = set()
        self.rounded: set[Node] = set()
        """Readers of weights that differ by rounding alone."""
        self.recast: set[Node] = set()
        """Layers that decompress weights of another type than in the other model; only their results are compared."""
        self.roundings: Counter[str] = Counter()
        """The number of constants that differ by rounding to a type, by type."""
        self._errors: dict[Node, LayerError] = {}
        for graph in model.walk():
            for node in graph.nodes:
                self._errors.update(self._operand_errors(node))

    def pop_errors(self, node: Node) -> list[LayerError]:
        """Return, and remove, the errors of the constants that this node reads."""
        return [self._errors.pop(i.node) for i in node.inputs if i.node in self._errors]

    def pop_remaining_errors(self) -> list[LayerError]:
        """Return the errors of constants whose readers did not run."""
        left = list(self._errors.values())
        self._errors.clear()
        return left

    def _operand_errors(self, node: Node) -> Iterator[tuple[Node, LayerError]]:
        other = self._partners.get(node)
        if other is None or is_constant_expression(node):
            return
        for i, j in zip(node.inputs, other.inputs, strict=False):
            if is_constant_expression(i.node) and is_constant_expression(j.node):
                yield from self._pair(node, i.node, j.node, i.index, j.index)

    def _pair(self, reader: Node, ours: Node, theirs: Node, k: int, m: int) -> Iterator[tuple[Node, LayerError]]:
        leaves = constants_of(ours)
        pairs = [(n, self._partners.get(n)) for n in leaves]
        same = [(n, o) for n, o in pairs if o is not None and _storage(n) == _storage(o)]
        theirs_leaves = constants_of(theirs)
        if len(same) == len(leaves) == len(theirs_leaves) or _narrowest(leaves) == _narrowest(theirs_leaves):
            for a, b in same:
                if a not in self._compared:
                    self._compared.add(a)
                    error = self._bitwise(a, b)
                    if error is not None:
                        yield a, error
            return
        self.recast.update(ancestors([ours]))
        a, b = fold(ours)[k], fold(theirs)[m]
        if a.shape != b.shape or a.dtype.kind not in "fV" or b.dtype.kind not in "fV":
            return  # the reader reports it
        wide, narrow = sorted((_narrowest(leaves), _narrowest(theirs_leaves)), key=_bits, reverse=True)
        if identical(a, b) or bool(np.array_equal(a, b, equal_nan=True)):
            return
        leaf = max(leaves, key=lambda n: n.outputs[0].type.shape.size.lo)
        name = self._paths[leaf]
        if narrow == "f16" and (_rounds(a, b) or _rounds(b, a)):
            self.rounded.add(reader)
            self.roundings[narrow] += leaf not in self._compared
            self._compared.add(leaf)
        elif leaf not in self._compared:
            self._compared.add(leaf)
            allowed = max(
                tolerance(e, b, name, self._wanted) for e in (wide, narrow, ours.outputs[k].type.element.name)
            )
            error = measure(a, b, allowed)
            if not error.passed:
                element = leaf.outputs[0].type.element.name
                entry = (name, "Const", leaf.id, element, a.shape, allowed, error, error)
                yield (
                    leaf,
                    LayerError(*entry, f"decompressed from {_narrowest(leaves)} and {_narrowest(theirs_leaves)}"),
                )

    def _bitwise(self, ours: Node, theirs: Node) -> LayerError | None:
        a, b = (cast(Array, n.op.attributes["data"]()) for n in (ours, theirs))
        change = value_change(a, b)
        if change is None:
            return None
        element, name = ours.outputs[0].type.element.name, self._paths[ours]
        if a.shape != b.shape:
            problem = f"shape {list(a.shape)} against {list(b.shape)}"
            return LayerError(name, "Const", ours.id, element, a.shape, 0.0, None, None, problem)
        is_asked = element in self._wanted or any(matches(name, p) for p in self._wanted if p not in TYPES)
        allowed = tolerance(element, b, name, self._wanted) if is_asked else 0.0
        error = measure(a, b, allowed)
        entry = (name, "Const", ours.id, element, a.shape, allowed, error, error)
        return LayerError(*entry, "" if is_asked else str(change))


def fold(node: Node) -> tuple[Array, ...]:
    """The outputs of a constant expression."""
    values: dict[Node, tuple[Array, ...]] = {}
    pending = [node]
    while pending:
        last = pending[-1]
        missing = [i.node for i in last.inputs if i.node not in values]
        if missing:
            pending += missing
            continue
        pending.pop()
        if last.type == "Const":
            values[last] = (last.op.attributes["data"](),)
        else:
            inputs = [values[i.node][i.index] for i in last.inputs]
            values[last] = tuple(evaluate(last.op, inputs, [o.type for o in last.outputs], cast(Any, None)))
    return values[node]


def constant_paths(model: Model, names: Mapping[Node, str]) -> dict[Node, str]:
    """Return the name of each constant, prefixed by the bodies that lead to it."""
    paths: dict[Node, str] = {}
    pending: list[tuple[Any, str]] = [(model, "")]
    while pending:
        graph, before = pending.pop()
        paths.update({n: before + names[n] for n in graph.nodes if is_constant(n)})
        pending += [(body, f"{before}{names[node]}/{name}/") for node, name, body in graph.subgraphs()]
    return paths


def constants_of(node: Node) -> list[Node]:
    """Return the constants that a node depends on."""
    return [n for n in ancestors([node]) if n.type == "Const"]


def _storage(node: Node) -> object:
    return node.op.attributes["element_type"]


def _narrowest(leaves: list[Node]) -> str:
    """Return the element type of the largest constant."""
    return str(_storage(max(leaves, key=lambda n: n.outputs[0].type.shape.size.lo)))


def _bits(element: str) -> int:
    return int("".join(c for c in element if c.isdigit())[:2] or 0)


def _rounds(wide: Array, narrow: Array) -> bool:
    """Whether `narrow`, of any float type, equals `wide` rounded to f16."""
    with np.errstate(all="ignore"):
        half = narrow.astype(np.float16)
        return bool(np.array_equal(half.astype(narrow.dtype), narrow, equal_nan=True)) and is_rounding(wide, half)
