"""The structural difference of two models: edits, and the changes of shapes that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irload.comparison.criteria import is_constant
from irload.comparison.edits import NAMES, Change, Difference, LayerEdit, ShapeChange
from irload.comparison.layer_changes import changes_of, described
from irload.comparison.matching import match
from irload.comparison.recasts import Recast, recasts
from irload.errors import ReadError
from irload.graph import Graph, Node, Output
from irload.loading import read_anyway
from irload.model import Model
from irload.read.constants import StoredConstant
from irload.runtime.observation import labels
from irload.safety.limits import DEFAULT, Limits
from irload.write.upgrade import as_v11

__all__ = ["diff"]


def diff(
    a: Model | str | Path,
    b: Model | str | Path,
    *,
    ignore: Sequence[str] = (),
    limits: Limits = DEFAULT,
    weights_a: str | Path | None = None,
    weights_b: str | Path | None = None,
) -> Difference:
    """Return the edits that turn model `a` into model `b`: layers added, removed, changed or rewired; constants.

    `a`, `b`: a Model or its path; files with invalid layers are compared, too. `limits` apply to reading.
    `weights_a`, `weights_b`: their .bin files if they are not beside the models. Layers are
    matched by structure, as in `compare`. `ignore`: `names` ignores edits that only rename. Differences that are
    ignored: ids, versions of operations with the same meaning, attributes with their default value, offsets of
    constants in the .bin, rt_info, and layers that no output depends on. If the IR versions differ, IR v10 is converted
    to v11 first. Raises the errors of reading.
    """
    difference = Difference(_name(a), _name(b))
    models = [_model(side, bin_file, limits, difference) for side, bin_file in ((a, weights_a), (b, weights_b))]
    for model in models:
        _require_weights(model)
    is_old = min(m.ir_version for m in models) < 11
    if len({m.ir_version for m in models}) > 1 or _hides_types(*models):
        models = [as_v11(m) for m in models]
    first, second = models
    pairs = match(first, second)
    difference.layers = _count(first), _count(second)
    pending: list[tuple[Graph, Graph, str]] = [(first, second, "")]
    names = labels(first), labels(second)
    while pending:
        ours, theirs, path = pending.pop(0)
        graphs = _Graphs(ours, theirs, pairs, names, path, is_old)
        graphs.compare(difference)
        inside = {(graphs.to_a.get(node), name): body for node, name, body in theirs.subgraphs()}
        for node, name, body in ours.subgraphs():
            other = inside.get((node, name))
            if other is not None:
                pending.append((body, other, f"{path}{names[0][node]}/{name}/"))
    if "names" in ignore:
        difference.edits = [e for e in map(_without_names, difference.edits) if e is not None]
    return difference


def _without_names(edit: LayerEdit) -> LayerEdit | None:
    """Return the edit without changes of names; None if nothing is left."""
    changes = tuple(c for c in edit.changes if c.what not in NAMES)
    if edit.kind != "changed" or changes == edit.changes:
        return edit
    return replace(edit, changes=changes) if changes else None


def _model(side: Model | str | Path, weights: str | Path | None, limits: Limits, difference: Difference) -> Model:
    if isinstance(side, Model):
        return side
    return read_anyway(side, weights, limits=limits, note=lambda error: difference.notes.append(str(error)))


def _require_weights(model: Model) -> None:
    """Raise ReadError, with the file and the layer, if the model has constants and no .bin file."""
    constants = (n for graph in model.walk() for n in graph.nodes if is_constant(n))
    first = next((n for n in constants if isinstance(n.op.attributes["data"], StoredConstant)), None)
    if first is not None:
        try:
            first.op.attributes["data"]()
        except ReadError as error:
            raise error.at(first.where(model.file)) from None


def _hides_types(a: Model, b: Model) -> bool:
    """Whether a graph mixes input types in one layer: IR v10 converts without a Convert layer."""
    pairs = list(zip(a.inputs, b.inputs, strict=False))
    shown = all(p.element_type is q.element_type for p, q in pairs)
    return shown and any(p.output.type.element is not q.output.type.element for p, q in pairs)


def _name(side: Model | str | Path) -> str:
    return (side.file or side.name or "the model") if isinstance(side, Model) else str(side)


def _count(model: Model) -> int:
    return sum(node.reachable for graph in model.walk() for node in graph.nodes)


@dataclass(slots=True)
class _Graphs:
    """Two corresponding graphs: the outer ones, or two bodies."""

    a: Graph
    b: Graph
    to_a: Mapping[Node, Node]
    names: tuple[Mapping[Node, str], Mapping[Node, str]]
    path: str
    is_old: bool

    def compare(self, difference: Difference) -> None:
        """Add the edits of the graphs."""
        stored = recasts(self.a, self.b, self.to_a)
        absorbed = {n for r in stored for n in r.absorbed}
        self.to_a = {k: v for k, v in self.to_a.items() if k not in absorbed and v not in absorbed}
        self.to_a |= {r.b: r.a for r in stored}
        to_b = {v: k for k, v in self.to_a.items()}
        edits: list[tuple[float, LayerEdit]] = []
        positions = {node: float(k) for k, node in enumerate(self.b.nodes)}
        special = {r.b: r for r in stored}
        for node in self.b.nodes:
            other = self.to_a.get(node)
            if other is None:
                if node.reachable and node not in absorbed:
                    edits.append((positions[node], self.lone("added", node)))
            elif node.reachable and other.reachable:
                edits += ((positions[node], e) for e in self.pair(other, node, special.get(node), difference))
            elif node.reachable or other.reachable:
                difference.unused.append(self.path + self.names[0][other])
        for node in self.a.nodes:
            if node.reachable and node not in to_b and node not in absorbed:
                before = max((positions.get(to_b[i.node], 0.0) for i in node.inputs if i.node in to_b), default=-1.0)
                position = before + 0.5
                edits.append((position, self.lone("removed", node)))
        edits += ((float("inf"), e) for e in self.orders())
        difference.edits += (edit for _, edit in sorted(edits, key=lambda pair: pair[0]))

    # -- layers of both ------------------------------------------------------------------------------------------------

    def pair(self, a: Node, b: Node, recast: Recast | None, difference: Difference) -> Iterator[LayerEdit]:
        """Return the edits of a layer that both graphs have."""
        changes = [recast.change()] if recast is not None else changes_of(a, b, self.to_a, is_old=self.is_old)
        changes += [] if recast is not None else self.inputs(a, b)
        old, new = self.names[0][a], self.names[1][b]
        if a.name != b.name and recast is None and min(a.id, b.id) >= 0:
            changes.append(Change("name", "", a.name, b.name))
        if changes:
            kind = recast.a.type if recast is not None else a.type
            ids, lines = (a.id, b.id), (a.line, b.line)
            yield LayerEdit("changed", self.path + (old or new), kind, tuple(changes), "", ids, lines)
        if not changes or all(c.what != "shape" for c in changes):
            several = len(a.outputs) > 1
            for p, q in zip(a.outputs, b.outputs, strict=False):
                if (p.type.element, p.type.shape) != (q.type.element, q.type.shape) and recast is None:
                    name = self.path + old + (f":{p.index}" if several else "")
                    difference.follows.append(ShapeChange(name, a.type, str(p.type), str(q.type)))

    def inputs(self, a: Node, b: Node) -> list[Change]:
        """Return the inputs that another layer feeds now. Layers inserted into or removed from an edge are ignored."""
        changes: list[Change] = []
        for k in range(max(len(a.inputs), len(b.inputs))):
            old = a.inputs[k] if k < len(a.inputs) else None
            new = b.inputs[k] if k < len(b.inputs) else None
            if old is not None and new is not None and (self.is_same(old, new) or self.is_spliced(old, new)):
                continue
            changes.append(Change("input", str(k), self.source(old, 0), self.source(new, 1)))
        return changes

    def is_same(self, old: Output, new: Output) -> bool:
        return self.to_a.get(new.node) is old.node and old.index == new.index

    def is_spliced(self, old: Output, new: Output) -> bool:
        """Whether only added, or only removed, layers are between the two sources."""
        known = set(self.to_a.values())
        starts = _through(old, lambda node: node not in known)
        ends = _through(new, lambda node: node not in self.to_a)
        return any(self.is_same(p, q) for p in starts for q in ends) or (
            old.node not in known and new.node not in self.to_a
        )

    def source(self, output: Output | None, side: int) -> str:
        if output is None:
            return ""
        name = self.names[side][output.node]
        return f"{name}:{output.index}" if len(output.node.outputs) > 1 else name

    # -- layers of one -------------------------------------------------------------------------------------------------

    def lone(self, kind: Any, node: Node) -> LayerEdit:
        """Return the edit for a layer that only one graph has."""
        side = 0 if kind == "removed" else 1
        names = self.names[side]
        graph = self.a if side == 0 else self.b
        known = self.to_a if side else set(self.to_a.values())
        sources = [self.source(i, side) for i in node.inputs]
        takers = [names[n] for n in graph.nodes if n in known and any(i.node is node for i in n.inputs)]
        parts = [f"fed by {_listed(sources)}"] if sources else []
        parts += [f"feeding {_listed(takers)}"] if takers else []
        ids = (node.id, None) if side == 0 else (None, node.id)
        lines = (node.line, None) if side == 0 else (None, node.line)
        changes = tuple(described(node, is_a=side == 0))
        return LayerEdit(kind, self.path + names[node], node.type, changes, ", ".join(parts), ids, lines)

    def orders(self) -> Iterator[LayerEdit]:
        """Return an edit if inputs or outputs of the graph are in another order."""
        for kind, ours, theirs in (
            ("inputs", self.a.parameters, self.b.parameters),
            ("outputs", self.a.results, self.b.results),
        ):
            matched = [self.to_a[n] for n in theirs if n in self.to_a]
            before = [n for n in ours if n in set(matched)]
            if matched != before:
                lists = [_listed([self.names[0][n] for n in nodes]) for nodes in (before, matched)]
                change = Change("order", "", lists[0], lists[1])
                yield LayerEdit(
                    "changed", f"{self.path}{kind}", "Parameter" if kind == "inputs" else "Result", (change,)
                )


def _through(output: Output, passes: Any) -> list[Output]:
    """Return the source of an output, through layers that `passes` accepts."""
    sources, pending, seen = [output], [output], set[Node]()
    while pending:
        node = pending.pop().node
        if passes(node) and node not in seen:
            seen.add(node)
            sources += node.inputs
            pending += node.inputs
    return sources


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown
