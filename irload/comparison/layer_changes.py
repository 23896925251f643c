"""Compares two matched layers and returns the edits between them, except for edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irload.comparison.criteria import attribute_texts
from irload.comparison.edits import Change
from irload.comparison.weights import value_change
from irload.core.subgraph import Subgraph
from irload.errors import IRError
from irload.graph import Graph, Node, UnknownOp, subgraphs

__all__ = ["changes_of", "described"]

_PLACES = ("offset", "size")
"""Attributes of a constant that only locate it in the .bin."""
_NONE: frozenset[str] = frozenset()
LONG = 120
"""Upper bound of the characters of an attribute in an edit."""


def changes_of(a: Node, b: Node, to_a: Mapping[Node, Node], *, is_old: bool) -> list[Change]:
    """Type, version, attributes, constants, tensor names and the wiring of bodies. `to_a` matches nodes of bodies.

    `is_old`: one model is of IR v10, in which an output of the model has the name of its layer.
    """
    changes: list[Change] = []
    if a.type != b.type:
        changes.append(Change("type", "", a.type, b.type))
    elif a.op.opset != b.op.opset:
        changes.append(Change("version", "", a.op.opset, b.op.opset))
    if a.type == b.type == "Const" and not isinstance(a.op, UnknownOp) and not isinstance(b.op, UnknownOp):
        changes += _constants(a, b)
    else:
        before, after = attribute_texts(a), attribute_texts(b)
        for key in [*before, *(k for k in after if k not in before)]:
            if before.get(key) != after.get(key):
                aspect = {"shape": "shape", "element_type": "precision"}.get(key) if a.type == "Parameter" else None
                changes.append(Change(aspect or "attribute", key, _short(before.get(key)), _short(after.get(key))))
    if min(a.id, b.id) >= 0:  # inserted converters stand for implicit conversions at the inputs and outputs of IR v10
        pairs = [(p.names, q.names) for p, q in zip(a.outputs, b.outputs, strict=False)]
        pairs += [(a.output_names or _NONE, b.output_names or _NONE)] if a.type == b.type == "Result" else []
        for k, (old, new) in enumerate(pairs):
            layer_names = {f"{node.name}{end}" for node in (a, b) for end in ("", f".{k}")} if is_old else _NONE
            if old - layer_names != new - layer_names:
                changes.append(Change("names", str(k), ", ".join(sorted(old)), ", ".join(sorted(new))))
    changes += _bodies(a, b, to_a)
    return changes


def described(node: Node, *, is_a: bool) -> Iterator[Change]:
    """Return the attributes of a layer that only one model has, except optional ones that have their default value."""
    declared = ((node.op.attributes[name], d) for name, d in node.op.declared.items() if not d.supplied)
    defaults = {d.xml_name for value, d in declared if value == d.default}
    for key, text in attribute_texts(node).items():
        if text not in (None, "") and key not in defaults.union(_PLACES):
            shown = _short(text)
            yield Change("attribute", key, shown if is_a else "", "" if is_a else shown)


def _constants(a: Node, b: Node) -> list[Change]:
    """Return changes of element type, shape and values."""
    changes: list[Change] = []
    old, new = a.op.attributes, b.op.attributes
    for key, aspect in (("element_type", "precision"), ("shape", "shape")):
        if old[key] != new[key]:
            changes.append(Change(aspect if key != "shape" else "attribute", key, str(old[key]), str(new[key])))
    if any(c.key == "shape" for c in changes):
        return changes
    try:
        values = value_change(old["data"](), new["data"]())
    except IRError as error:
        raise error.at(a.where()) from None
    return [*changes, Change("values", "", "", "", values)] if values is not None else changes


def _bodies(a: Node, b: Node, to_a: Mapping[Node, Node]) -> Iterator[Change]:
    ours, theirs = subgraphs(a), subgraphs(b)
    for name in [*ours, *(n for n in theirs if n not in ours)]:
        if (name in ours) != (name in theirs):
            old, new = ("a body" if name in side else "" for side in (ours, theirs))
            yield Change("wiring", name, old, new)
            continue
        old, new = _wiring(ours[name], {}), _wiring(theirs[name], to_a)
        if set(old) != set(new):
            lost, gained = ("; ".join(sorted({*x} - {*y})) for x, y in ((old, new), (new, old)))
            yield Change("wiring", name, _short(lost), _short(gained))


def _wiring(subgraph: Subgraph, to_a: Mapping[Node, Node]) -> list[str]:
    """Return the lines of the port map and the back edges, with the names that layers of the body have in A."""
    body = subgraph.body
    if not isinstance(body, Graph):
        return []

    def ends(nodes: list[Node]) -> list[str]:
        return [(to_a.get(n, n)).name or f"{n.type} {k}" for k, n in enumerate(nodes)]

    parameters, results = ends(body.parameters), ends(body.results)
    wiring: list[str] = []
    for kind, maps, names in (("input", subgraph.inputs, parameters), ("output", subgraph.outputs, results)):
        for line in maps:
            axis = (
                "" if line.axis is None else f" axis {line.axis} {line.start}:{line.end}:{line.stride}/{line.part_size}"
            )
            wiring.append(
                f"{kind} {line.outer} – {names[line.inner]}{axis}{f' ({line.purpose})' if line.purpose else ''}"
            )
    return wiring + [f"{results[r]} → {parameters[p]}" for r, p in subgraph.back_edges]


def _short(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= LONG else f"{text[:LONG]}…"
