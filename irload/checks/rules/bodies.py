"""IR5xx: bodies of control flow, and state."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule, graph_rule
from irload.checks.subject import Scope, Subject, named
from irload.core.element import dynamic
from irload.graph import UnknownOp
from irload.read.raw import RawGraph, RawLayer
from irload.read.wiring import fed_twice
from irload.wording import near_names

_MAPS = {"body": "port_map", "then_body": "then_port_map", "else_body": "else_port_map"}


def _ids(graph: RawGraph, type: str) -> set[str]:
    return {str(layer.id) for layer in graph.layers if layer.type == type}


def _bodies(scope: Scope) -> Iterator[tuple[RawLayer, str, RawGraph, list[dict[str, str]]]]:
    """(layer, body's tag, body, lines of its port map) of every body directly inside a graph."""
    for layer in scope.layers.values():
        for tag, body in layer.bodies.items():
            yield layer, tag, body, layer.maps.get(_MAPS[tag], [])


@graph_rule("IR501", "error", "port map to a missing port")
def port_map(scope: Scope) -> Iterator[Hit]:
    """A line of a port map, or a back edge, names a port of the layer or a layer of the body that does not exist.

    Example: `<input external_port_id="7" internal_layer_id="0"/>` on a layer whose input ports are 0 and 1.
    """
    for layer, tag, body, lines in _bodies(scope):
        ports = {"input": {str(p.id) for p in layer.inputs}, "output": {str(p.id) for p in layer.outputs}}
        for line in lines:
            side, external = line["tag"], line.get("external_port_id", "")
            if side in ports and external != "-1" and external not in ports[side]:
                # OpenVINO uses only the order of the ids of outputs, not their values.
                yield Hit(layer, f"{_MAPS[tag]} names {side} port {external}, which the layer lacks", line=_line(line))
        for line, kind, identity in _unresolved(layer, tag, body, lines):
            referrer = "a back edge" if line.get("tag") == "edge" else _MAPS[tag]
            cause = _candidates(layer, tag, body, lines, kind)
            yield Hit(
                layer, f"{referrer} names layer {identity}, which is not a {kind} of the body", cause, _line(line)
            )


def _unresolved(
    layer: RawLayer, tag: str, body: RawGraph, lines: list[dict[str, str]]
) -> Iterator[tuple[dict[str, str], str, str]]:
    """Lines of a port map, or back edges, with an id that no layer of the body has: (line, kind of layer, id)."""
    for line in lines:
        kind = {"input": "Parameter", "output": "Result"}.get(line["tag"])
        if kind is not None and line.get("internal_layer_id", "") not in _ids(body, kind):
            yield line, kind, line.get("internal_layer_id", "")
    for edge in layer.maps.get("back_edges", []) if tag == "body" else []:
        for end, kind in (("from-layer", "Result"), ("to-layer", "Parameter")):
            if edge.get(end, "") not in _ids(body, kind):
                yield edge, kind, edge.get(end, "")


def _unmapped(layer: RawLayer, tag: str, body: RawGraph, lines: list[dict[str, str]], kind: str) -> list[RawLayer]:
    """The Parameters or Results of a body that neither its port map nor a back edge names."""
    side, end = ("input", "to-layer") if kind == "Parameter" else ("output", "from-layer")
    named = {line.get("internal_layer_id") for line in lines if line["tag"] == side}
    if tag == "body":
        named |= {edge.get(end) for edge in layer.maps.get("back_edges", [])}
    return [inner for inner in body.layers if inner.type == kind and str(inner.id) not in named]


def feeds_too_little(layer: RawLayer) -> bool:
    """True if a Parameter of one of its bodies has no input."""
    return any(_unmapped(layer, tag, b, layer.maps.get(_MAPS[tag], []), "Parameter") for tag, b in layer.bodies.items())


def _unexplained(layer: RawLayer, tag: str, body: RawGraph, lines: list[dict[str, str]], kind: str) -> list[RawLayer]:
    """The unmapped Parameters or Results; none if IR501 reports at least as many lines with a wrong layer id."""
    unmapped = _unmapped(layer, tag, body, lines, kind)
    unresolved = sum(k == kind for _, k, _ in _unresolved(layer, tag, body, lines))
    return unmapped if unresolved < len(unmapped) else []


def _candidates(layer: RawLayer, tag: str, body: RawGraph, lines: list[dict[str, str]], kind: str) -> str:
    unmapped = [f"'{inner.name}' (id {inner.id})" for inner in _unmapped(layer, tag, body, lines, kind)]
    return f"not mapped: {', '.join(unmapped[:4])}" if unmapped else ""


@graph_rule("IR502", "warning", "body result that is not mapped")
def lost_result(scope: Scope) -> Iterator[Hit]:
    """A Result of a body is neither mapped to an output nor the source of a back edge.

    OpenVINO does not report a missing back edge: the merged input becomes an invariant, and each iteration starts
    from the initial value.

    Example: a TensorIterator whose `<back_edges>` was lost.
    """
    for layer, tag, body, lines in _bodies(scope):
        for result in _unexplained(layer, tag, body, lines, "Result"):
            message = f"Result '{result.name}' (id {result.id}) of its {tag} is not mapped"
            yield Hit(layer, message, "is a back edge or a line of the port map missing?", line=result.line)


@graph_rule("IR503", "error", "external port mapped twice")
def mapped_twice(scope: Scope) -> Iterator[Hit]:
    """Two outputs of a port map share one external port id; OpenVINO drops one of them.

    Example: two `<output external_port_id="3" …/>` lines.
    """
    for layer, tag, _, lines in _bodies(scope):
        seen: set[str] = set()
        for line in lines:
            external = line.get("external_port_id", "")
            if line["tag"] == "output" and external != "-1" and external in seen:
                yield Hit(layer, f"{_MAPS[tag]} maps output port {external} twice", line=_line(line))
            if line["tag"] == "output":
                seen.add(external)


@graph_rule("IR504", "error", "body parameter that nothing feeds")
def unfed_parameter(scope: Scope) -> Iterator[Hit]:
    """A Parameter of a body is the target of neither the port map nor a back edge.

    Example: a Loop whose line with purpose="current_iteration" was lost.
    """
    for layer, tag, body, lines in _bodies(scope):
        for parameter in _unexplained(layer, tag, body, lines, "Parameter"):
            message = f"Parameter '{parameter.name}' (id {parameter.id}) of its {tag} is fed by nothing"
            yield Hit(layer, message, line=parameter.line)


@graph_rule("IR505", "error", "body parameter differs from its input")
def parameter_differs(scope: Scope) -> Iterator[Hit]:
    """A Parameter of a body states a type or shape that the tensor fed to it cannot have.

    OpenVINO replaces the declaration without a warning.

    Example: a body Parameter of shape 1,2,3 that gets slices of shape [1,1,3].
    """
    if scope.owner is None:
        return
    for parameter in scope.graph.parameters:
        if isinstance(parameter.op, UnknownOp):
            continue
        fed, attributes = scope.type(parameter.outputs[0]), parameter.op.attributes
        element, shape = attributes["element_type"], attributes["shape"]
        if element is not dynamic and fed.element not in (dynamic, element):
            yield Hit(parameter, f"is of type {element}, but is fed {fed.element}", f"fed by {named(scope.owner)}")
        elif fed.shape.meet(shape) is None:
            yield Hit(parameter, f"has shape {shape}, but is fed {fed.shape}", f"fed by {named(scope.owner)}")


@graph_rule("IR509", "error", "body parameter fed twice")
def parameter_fed_twice(scope: Scope) -> Iterator[Hit]:
    """Two lines of a port map, or two back edges, end at one Parameter of a body; which one applies is undefined.

    A warning if both are equal.

    Example: `<edge from-layer="2" to-layer="0"/>` and `<edge from-layer="4" to-layer="0"/>` in one `<back_edges>`.
    """
    for layer, tag, _, lines in _bodies(scope):
        for side, parameter, sources in fed_twice(layer, tag, lines):
            same = len(set(sources)) == 1
            feeders = f"{side} {' and '.join(sources)}" if not same else f"{len(sources)} equal lines"
            message = f"Parameter {parameter} of its {tag} is fed by {feeders}"
            yield Hit(layer, message, severity="warning" if same else None)


@graph_rule("IR508", "note", "loop without back edges")
def no_back_edges(scope: Scope) -> Iterator[Hit]:
    """A TensorIterator or Loop returns a value of the last iteration, but has no back edge.

    Every iteration then starts from the initial values. If `<back_edges>` was lost, OpenVINO does not report it.

    Example: an LSTM in a TensorIterator without `<back_edges>`.
    """
    for layer, tag, _, lines in _bodies(scope):
        whole = [x for x in lines if x["tag"] == "output" and not x.get("axis") and x.get("external_port_id") != "-1"]
        if tag == "body" and whole and not layer.maps.get("back_edges"):
            yield Hit(
                layer, f"returns the last value of output port {whole[0].get('external_port_id')}, without back edges"
            )


@file_rule("IR506", "error", "Assign without ReadValue")
def assign_alone(subject: Subject) -> Iterator[Hit]:
    """No layer reads the variable that an Assign writes: OpenVINO refuses the file.

    Example: an Assign with variable_id="kv.0" where every ReadValue says "kv.1".
    """
    reads, writes = _variables(subject)
    for name, node in writes.items():
        if name not in reads:
            yield Hit(node, f"writes variable '{name}', which no ReadValue reads", _known(reads))


@file_rule("IR507", "warning", "ReadValue without Assign")
def read_alone(subject: Subject) -> Iterator[Hit]:
    """No layer writes the variable that a ReadValue reads, so it never changes; inference with the CPU plugin fails.

    Not reported if IR506 reports an Assign whose variable_id is probably a misspelling of this one.

    Example: a ReadValue whose Assign was lost.
    """
    reads, writes = _variables(subject)
    astray = [name for name in writes if name not in reads]
    lost = [name for name in reads if name not in writes]
    for name in astray:  # IR506 reports these; each is probably a misspelling of one in `lost`
        meant = near_names(name, lost, cutoff=0)
        lost = [other for other in lost if other not in meant]
    for name, node in reads.items():
        if name in lost:
            yield Hit(node, f"reads variable '{name}', which no Assign writes", _known(writes))


def _variables(subject: Subject) -> tuple[dict[str, RawLayer], dict[str, RawLayer]]:
    """The first ReadValue and the first Assign of each variable, over all graphs of the file."""
    by_type: dict[str, dict[str, RawLayer]] = {"ReadValue": {}, "Assign": {}}
    for scope in subject.scopes:
        for layer in scope.layers.values():
            if layer.type in by_type and "variable_id" in layer.data:
                by_type[layer.type].setdefault(layer.data["variable_id"], layer)
    return by_type["ReadValue"], by_type["Assign"]


def _known(variables: dict[str, RawLayer]) -> str:
    return f"the variables are: {', '.join(map(repr, variables))}" if variables else "there are none"


def _line(line: dict[str, str]) -> int | None:
    return int(line["line"]) if line.get("line", "").isdigit() else None
