"""Points: the tensors of a model that a name, a port or a pattern selects."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from irload.edit.draft import Draft
from irload.errors import InputInvalid, IRError
from irload.graph import Node, Output, Port
from irload.wording import near_names, suggestion

__all__ = ["Point", "label", "leaving", "matching", "suggested"]

Point = str | Port
"""Selects tensors of the outer graph: a tensor name; a layer name (the output of the layer); `layer:1` (one of several
outputs); `1:layer` (the tensor at an input); a pattern such as `backbone/*`; or a port (an input or output)."""

_GLOB = "*?["


def matching(draft: Draft, point: Point, *, with_constants: bool = False) -> list[Output]:
    """The tensors that a point selects. A pattern selects them in graph order, constants only `with_constants`.

    Raises InputInvalid if there is none.
    """
    if isinstance(point, Port):
        return [(draft.input if point.node.type == "Parameter" else draft.output)(point).output]
    if not isinstance(point, str):
        raise TypeError(f"a tensor is selected by its name or by a Port, found {point!r}")
    selected = _named(draft, point) or _at_port(draft, point)
    if selected is None and any(c in point for c in _GLOB):
        excluded = set[Node]() if with_constants else draft.constant_nodes
        outputs = [o for n in draft.model.nodes if n not in excluded for o in n.outputs]
        selected = [o for o in outputs if any(fnmatchcase(name, point) for name in (o.node.name, *o.names))]
    return selected or _by_position(draft, point)


def leaving(draft: Draft, point: Point, *, with_constants: bool = False) -> list[Output]:
    """The tensors that a point selects; for a pattern, only tensors that are read by a layer that does not match it."""
    outputs = matching(draft, point, with_constants=with_constants)
    if len(outputs) < 2:
        return outputs
    nodes = {o.node for o in outputs}
    read = {i for n in draft.model.nodes if n not in nodes and n.reachable for i in n.inputs}
    return [o for o in outputs if o in read]


def label(output: Output) -> str:
    """The name of a tensor for messages and new ports: its layer, and the index if the layer has several outputs."""
    return output.node.name if len(output.node.outputs) == 1 else f"{output.node.name}:{output.index}"


def suggested(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: similar ones."""
    every = sorted(set(names))
    return suggestion(near_names(name, every, 3) or [n for n in every if name.lower() in n.lower()][:3])


def _named(draft: Draft, name: str) -> list[Output] | None:
    """The tensor of this name, else the output of the layer of this name; None if there is neither."""
    nodes = draft.model.nodes
    for node in nodes:
        for output in node.outputs:
            if name in output.names:
                return [output]
    for node in nodes:
        if node.type == "Result" and name in (node.name, *(node.output_names or ())):
            return list(node.inputs)
        if node.name == name:
            if len(node.outputs) != 1:
                ends = " or ".join(f"'{name}:{o.index}'" for o in node.outputs) or "a layer before it"
                raise InputInvalid(f"'{name}' is a {node.type} of {len(node.outputs)} outputs; name {ends}")
            return node.outputs
    return None


def _at_port(draft: Draft, point: str) -> list[Output] | None:
    """The tensor of `layer:1` or `1:layer`; None for other texts."""
    before, _, last = point.rpartition(":")
    first, _, after = point.partition(":")
    for node in draft.model.nodes:
        for name, index, side, tensors in (
            (before, last, "outputs", node.outputs),
            (after, first, "inputs", node.inputs),
        ):
            if node.name == name and name and index.isascii() and index.isdigit():
                if int(index) >= len(tensors):
                    raise InputInvalid(f"'{point}': {node.type} '{name}' has {len(tensors)} {side}")
                return [tensors[int(index)]]
    return None


def _by_position(draft: Draft, point: str) -> list[Output]:
    """The input or output of a name by position, as `result_2`. Raises InputInvalid."""
    for port in (*draft.model.inputs, *draft.model.outputs):
        if port.place_name == point:
            return [port.output]
    raise _unknown(draft, point)


def _unknown(draft: Draft, point: str) -> IRError:
    for node, _, body in draft.model.subgraphs():
        if any(point == n.name or any(point in o.names for o in n.outputs) for g in body.walk() for n in g.nodes):
            return InputInvalid(f"'{point}' is inside the body of {node.type} '{node.name}', which cannot be cut")
    if any(c in point for c in _GLOB):
        return InputInvalid(f"no layer or tensor matches '{point}'; `irrun inspect` lists them")
    names = [name for n in draft.model.nodes for name in (n.name, *(t for o in n.outputs for t in o.names))]
    return InputInvalid(f"the model has no layer or tensor '{point}'{suggested(point, names)}")
