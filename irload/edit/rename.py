"""Renames inputs, outputs, tensors and layers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from irload.edit.draft import Draft
from irload.edit.points import suggested
from irload.errors import InputInvalid
from irload.graph import Graph, Node
from irload.model import Model

__all__ = ["rename"]


def rename(model: Model, names: Mapping[str, str]) -> Model:
    """The model with other names of inputs, outputs, tensors and layers.

    `names` maps old names to new ones, and applies to every layer and tensor of the old name, also in bodies. A renamed
    input or output has only the new name. In `{"backbone/*": "features/*"}` each `*` of the new name stands for the
    text that the `*` at the same position of the old name matches. All names are replaced at once, so two names can be
    exchanged. Raises InputInvalid for a name that does not occur, and for a new name that another layer or tensor has.
    """
    draft = Draft(model)
    if not isinstance(names, Mapping):
        raise TypeError(f"names are a dict from old to new names, found {names!r}")
    rules = [_Rule(old, new) for old, new in names.items()]
    graphs = list(draft.model.walk())
    before = [_repeated(graph) for graph in graphs]
    known = [name for graph in graphs for node in graph.nodes for name in _names_of(node)]
    ports = {p.output for p in (*draft.model.inputs, *draft.model.outputs)}
    for node in (n for graph in graphs for n in graph.nodes):
        old, node.name = node.name, _renamed(rules, node.name)
        if node.output_names is not None:
            node.output_names = _renamed_all(rules, node.output_names, only=True)
        for output in node.outputs:
            output.names = _renamed_all(rules, output.names, only=output in ports)
        if node.name != old:
            _name_port(node)
    for rule in rules:
        if not rule.matched:
            raise InputInvalid(f"the model has no layer or tensor '{rule.old}'{suggested(rule.old, known)}")
    for graph, old in zip(graphs, before, strict=True):
        allowed = old | {(kind, _renamed(rules, name)) for kind, name in old}
        for kind, name in sorted(_repeated(graph) - allowed):
            raise InputInvalid(f"two {kind}s would have the name '{name}'; choose another name for one of them")
    return draft.finished()


class _Rule:
    """One entry of `names`. `matched` is set by the first match."""

    def __init__(self, old: str, new: str) -> None:
        if not (isinstance(old, str) and isinstance(new, str)):
            raise TypeError(f"names are strings, found {old!r}: {new!r}")
        self.old, self.new = old, new
        self.matched = False
        if new.count("*") not in (0, old.count("*")):
            raise InputInvalid(f"'{new}' must contain as many * as '{old}', or none")
        self._pattern = re.compile("(.*?)".join(map(re.escape, old.split("*"))), re.DOTALL)

    def apply(self, name: str) -> str | None:
        """The new name of a layer or tensor, None unless the old one matches."""
        match = self._pattern.fullmatch(name)
        if match is None or not name:
            return None
        self.matched = True
        parts = iter(match.groups())
        return re.sub(r"\*", lambda _: next(parts), self.new)


def _renamed(rules: Iterable[_Rule], name: str) -> str:
    """The name by the first rule that matches."""
    return next((new for rule in rules if (new := rule.apply(name)) is not None), name)


def _renamed_all(rules: Iterable[_Rule], names: frozenset[str], *, only: bool) -> frozenset[str]:
    """The names of one tensor; if one changes, `only` the changed ones."""
    changed = {name: _renamed(rules, name) for name in sorted(names)}
    new = frozenset(new for name, new in changed.items() if new != name)
    return new if new and only else frozenset(changed.values())


def _name_port(node: Node) -> None:
    """Give a renamed input or output without tensor names the name of its layer as a tensor name."""
    tensor = node.outputs[:1] if node.type == "Parameter" else node.inputs if node.type == "Result" else []
    for output in tensor:
        output.names = output.names or frozenset({node.name})


def _names_of(node: Node) -> list[str]:
    return [node.name, *(name for o in node.outputs for name in o.names)]


def _repeated(graph: Graph) -> set[tuple[str, str]]:
    """The names, with their kind, that several layers or several tensors of a graph have."""
    layers = Counter(("layer", n.name) for n in graph.nodes)
    tensors = Counter(("tensor", name) for n in graph.nodes for o in n.outputs for name in o.names)
    return {name for name, count in (layers + tensors).items() if count > 1}
