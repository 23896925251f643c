"""IR1xx: identity. Ids and names that should be unique."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, graph_rule
from irload.checks.subject import Scope
from irload.read.raw import RawLayer


@graph_rule("IR101", "error", "duplicate layer id")
def duplicate_layer_id(scope: Scope) -> Iterator[Hit]:
    """Two layers of one graph have the same id; OpenVINO silently keeps the later one.

    Edges with an id that no layer has are assumed to belong to one of the two if they fit it, and are not reported.

    Example: two `<layer id="3" …>` in one `<layers>`.
    """
    first: dict[int, RawLayer] = {}
    for layer in scope.raw.layers:
        twin = first.setdefault(layer.id, layer)
        if twin is not layer:
            lost = next((i for i, meant in scope.renumbered.items() if meant.id == layer.id), None)
            cause = f"edges name layer {lost}, which does not exist; this may be its id" if lost is not None else ""
            lines = [e.line for e in scope.raw.edges if lost in (e.from_layer, e.to_layer)]
            message = f"has id {layer.id}, which '{twin.name}' (line {twin.line}) already has"
            yield Hit(layer, message, cause, covers=lines)


@graph_rule("IR102", "error", "duplicate port id")
def duplicate_port_id(scope: Scope) -> Iterator[Hit]:
    """Two ports of one layer have the same id, so edges to it are ambiguous.

    Example: `<input><port id="0"/><port id="0"/></input>`.
    """
    for layer in scope.raw.layers:
        seen: set[int] = set()
        # Only if input ports have ids: the reader does not require them on layers without incoming edges.
        for port in (*layer.inputs, *layer.outputs):
            if port.id in seen:
                yield Hit(layer, f"has two ports with id {port.id}", line=port.line, port=f"port {port.id}")
            seen.add(port.id)


@graph_rule("IR103", "note", "duplicate layer name")
def duplicate_layer_name(scope: Scope) -> Iterator[Hit]:
    """Two layers of one graph have the same name. The file loads, but tools that select layers by name reach only one.

    Example: two layers named `relu`.
    """
    first: dict[str, RawLayer] = {}
    for layer in scope.layers.values():
        twin = first.setdefault(layer.name, layer)
        if twin is not layer and layer.name:
            yield Hit(layer, f"has the name of layer {twin.id} (line {twin.line})")


@graph_rule("IR104", "note", "nameless layer")
def nameless_layer(scope: Scope) -> Iterator[Hit]:
    """A layer has an empty name. The file loads, but messages cannot name the layer.

    Example: `<layer id="4" name="" …>`.
    """
    for layer in scope.layers.values():
        if not layer.name:
            yield Hit(layer, "has no name")
