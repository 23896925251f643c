"""IR2xx: edges."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, graph_rule
from irload.checks.subject import Scope
from irload.read.raw import RawEdge, RawPort


def _text(edge: RawEdge) -> str:
    return f"edge {edge.from_layer}:{edge.from_port} → {edge.to_layer}:{edge.to_port}"


def _ids(ports: list[RawPort]) -> str:
    return ", ".join(str(p.id) for p in ports) or "none"


@graph_rule("IR201", "error", "edge to a missing layer")
def dangling(scope: Scope) -> Iterator[Hit]:
    """Edges start from or end at a layer id that the graph does not have. Each missing layer is reported once.

    Example: `<edge from-layer="99" from-port="0" to-layer="3" to-port="0"/>` without a layer 99.
    """
    for lost in sorted(scope.lost_ids - scope.renumbered.keys()):
        edges = [e for e in scope.raw.edges if lost in (e.from_layer, e.to_layer)]
        verb = "starts from" if edges[0].from_layer == lost else "ends at"
        more = f"{len(edges) - 1} more edges name it" if len(edges) > 1 else ""
        message = f"{_text(edges[0])} {verb} layer {lost}, which does not exist"
        yield Hit(None, message, more, line=edges[0].line, covers=[e.line for e in edges])


@graph_rule("IR202", "error", "edge to a missing port")
def missing_port(scope: Scope) -> Iterator[Hit]:
    """An edge names a port id that the layer at that end does not list.

    Example: `to-port="5"` of a layer whose input ports are 0 and 1.
    """
    for edge in scope.raw.edges:
        source, target = scope.layers.get(edge.from_layer), scope.layers.get(edge.to_layer)
        if source is not None and all(p.id != edge.from_port for p in source.outputs):
            message = f"{_text(edge)}: there is no output port {edge.from_port}"
            yield Hit(source, message, f"its output ports are {_ids(source.outputs)}", line=edge.line)
        if target is not None and all(p.id != edge.to_port for p in target.inputs):
            message = f"{_text(edge)}: there is no input port {edge.to_port}"
            yield Hit(target, message, f"its input ports are {_ids(target.inputs)}", line=edge.line)


@graph_rule("IR203", "error", "input port with two producers")
def two_producers(scope: Scope) -> Iterator[Hit]:
    """Two edges end at one input port, or one edge is listed twice.

    Example: edges 0:0 → 2:0 and 1:0 → 2:0.
    """
    first: dict[tuple[int, int], RawEdge] = {}
    for edge in scope.raw.edges:
        twin = first.setdefault((edge.to_layer, edge.to_port), edge)
        target = scope.layers.get(edge.to_layer)
        if twin is edge or target is None:
            continue
        producers = [scope.layers[e.from_layer].name for e in (twin, edge) if e.from_layer in scope.layers]
        cause = f"it is fed by {' and by '.join(repr(p) for p in producers)}"
        yield Hit(
            target,
            f"{_text(edge)}: input port {edge.to_port} is already fed (line {twin.line})",
            cause,
            line=edge.line,
            port=f"input port {edge.to_port}",
        )


@graph_rule("IR204", "error", "input port without a producer")
def unfed(scope: Scope) -> Iterator[Hit]:
    """A layer lists an input port at which no edge ends.

    Example: a Convolution whose edge for the filters was lost.
    """
    for layer, port in scope.unfed:
        loose = scope.lost_producers.get((layer.id, port.id))
        cause = (
            f"'{loose.name}' (id {loose.id}) has an output of this type and feeds nothing" if loose is not None else ""
        )
        message = f"input port {port.id} is fed by no edge"
        yield Hit(layer, message, cause, port.line, f"input port {port.id}")


@graph_rule("IR205", "error", "cycle")
def cycle(scope: Scope) -> Iterator[Hit]:
    """Layers feed each other in a circle, so none of them can run first. Each circle is reported once.

    Example: 3:1 → 4:0 and 4:1 → 3:0.
    """
    remaining = {i: {f for fed in scope.feeds(layer).values() for f in fed} for i, layer in scope.layers.items()}
    remaining = {i: sources & scope.layers.keys() for i, sources in remaining.items()}
    # Remove layers whose sources are all removed, then layers whose consumers are all removed.
    _peel(remaining)
    consumers: dict[int, set[int]] = {i: set() for i in remaining}
    for i, sources in remaining.items():
        for s in sources & remaining.keys():
            consumers[s].add(i)
    _peel(consumers)
    pending = {i: remaining[i] & consumers.keys() for i in consumers}
    while pending:
        circle = _circle(pending)
        names = " → ".join(f"'{scope.layers[i].name}'" for i in reversed(circle))
        message = f"is on a cycle of {len(circle)} layers" if len(circle) > 1 else "feeds itself"
        lines = [scope.layers[i].line for i in circle]
        yield Hit(scope.layers[min(circle)], message, names if len(circle) > 1 else "", covers=lines)
        for i in circle:
            pending.pop(i, None)
        for sources in pending.values():
            sources.difference_update(circle)
        _peel(pending)


def _peel(sources: dict[int, set[int]]) -> None:
    """Remove, in place, every key without remaining values, repeatedly."""
    consumers: dict[int, list[int]] = {}
    for i, values in sources.items():
        for s in values:
            consumers.setdefault(s, []).append(i)
    count = {i: sum(s in sources for s in values) for i, values in sources.items()}
    ready = [i for i, n in count.items() if n == 0]
    while ready:
        done = ready.pop()
        sources.pop(done)
        for i in consumers.get(done, ()):
            if i in sources:
                count[i] -= 1
                if count[i] == 0:
                    ready.append(i)


def _circle(sources: dict[int, set[int]]) -> list[int]:
    """One circle of a graph in which every node has a source."""
    at = min(sources)
    path: dict[int, int] = {}
    while at not in path:
        path[at] = len(path)
        at = min(s for s in sources[at] if s in sources)
    return [i for i, k in path.items() if k >= path[at]]
