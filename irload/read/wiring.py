"""The wiring of bodies: port maps and back edges, from layer ids to positions."""

from __future__ import annotations

from collections.abc import Mapping

from irload.core.subgraph import PortMap, Subgraph
from irload.errors import ReadError
from irload.graph import Graph
from irload.read.raw import RawLayer

Line = Mapping[str, str]
_PURPOSES = {"input": "current_iteration", "output": "execution_condition"}


def wired(layer: RawLayer, name: str, body: Graph) -> Subgraph:
    """Return the body `name` of a layer with its port map and back edges. Raises ReadError for unknown ids."""
    parameters = {n.id: k for k, n in enumerate(body.parameters)}
    results = {n.id: k for k, n in enumerate(body.results)}
    lines = layer.maps.get(f"{name.removesuffix('body')}port_map", [])
    # External ids of inputs are ids of the layer's input ports. External ids of outputs define only their order.
    inputs = {p.id: k for k, p in enumerate(layer.inputs)}
    outputs = {e: k for k, e in enumerate(sorted(_external_outputs(lines)))}
    _require_one_source(layer, name, lines)
    return Subgraph(
        body,
        tuple(_port_map(line, inputs, parameters, "Parameter") for line in lines if line["tag"] == "input"),
        tuple(_port_map(line, outputs, results, "Result") for line in lines if line["tag"] == "output"),
        tuple(
            (_inner(edge, "from-layer", results, "Result"), _inner(edge, "to-layer", parameters, "Parameter"))
            for edge in (layer.maps.get("back_edges", []) if name == "body" else [])
        ),
    )


def _require_one_source(layer: RawLayer, name: str, lines: list[dict[str, str]]) -> None:
    """Raise ReadError if two inputs, or two Results, feed one Parameter of the body."""
    for side, parameter, sources in fed_twice(layer, name, lines):
        if len(set(sources)) > 1:
            raise ReadError(f"{side} {' and '.join(sources)} both feed layer {parameter} of the {name}")


def fed_twice(layer: RawLayer, name: str, lines: list[dict[str, str]]) -> list[tuple[str, str, list[str]]]:
    """Return the Parameters that several lines feed: (kind of the lines, id of the Parameter, ids of the sources)."""
    fed: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line["tag"] == "input":
            source = line.get("purpose") or line.get("external_port_id", "")
            fed.setdefault(("input ports", line.get("internal_layer_id", "")), []).append(source)
    for edge in layer.maps.get("back_edges", []) if name == "body" else []:
        fed.setdefault(("back edges from layers", edge.get("to-layer", "")), []).append(edge.get("from-layer", ""))
    return [(side, parameter, sources) for (side, parameter), sources in fed.items() if len(sources) > 1]


def _external_outputs(lines: list[dict[str, str]]) -> set[int]:
    seen: set[int] = set()
    for line in lines:
        external = _integer(line, "external_port_id")
        if line["tag"] != "output" or external < 0:
            continue
        if external in seen:
            raise ReadError(f"the port map gives output port {external} twice")
        seen.add(external)
    return seen


def _port_map(line: Line, ports: Mapping[int, int], inner: Mapping[int, int], kind: str) -> PortMap:
    external = _integer(line, "external_port_id")
    purpose = line.get("purpose", "")
    if purpose and purpose != _PURPOSES[line["tag"]]:
        raise ReadError(f"the port map has an {line['tag']} of purpose '{purpose}', expected {_PURPOSES[line['tag']]}")
    if external >= 0 and external not in ports:
        raise ReadError(f"the port map names external port {external}, which the layer does not have")
    if external < 0 and not purpose:
        raise ReadError(f"the port map has an {line['tag']} without port and without purpose")
    return PortMap(
        port=None if external < 0 else ports[external],
        inner=_inner(line, "internal_layer_id", inner, kind),
        axis=_integer(line, "axis") if "axis" in line else None,
        start=_integer(line, "start", 0),
        end=_integer(line, "end", -1),
        stride=_integer(line, "stride", 1),
        part_size=_integer(line, "part_size", 1),
        purpose=purpose,
    )


def _inner(line: Line, key: str, positions: Mapping[int, int], kind: str) -> int:
    layer_id = _integer(line, key)
    if layer_id not in positions:
        raise ReadError(f"{key} {layer_id} of the port map or the back edges is not a {kind} of the body")
    return positions[layer_id]


def _integer(line: Line, key: str, default: int | None = None) -> int:
    if key not in line and default is not None:
        return default
    text = line.get(key, "").lstrip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and -(2**63) <= int(text) < 2**63):
        raise ReadError(f"{key} of the port map or the back edges must be an integer of 64 bits, found '{text[:40]}'")
    return int(text)
