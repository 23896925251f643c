"""Bodies of TensorIterator. Legacy bodies have neither inputs nor results: the port map refers to ports of layers."""

from __future__ import annotations

from irload.errors import ReadError
from irload.read.raw import RawEdge, RawGraph, RawLayer, RawPort

Line = dict[str, str]


def add_endpoints(layer: RawLayer, body: RawGraph) -> None:
    """Add inputs and results to a body, and change the port map and the back edges of the layer to refer to them.

    Raises ReadError for a port that the body does not have.
    """
    endpoints = _Endpoints(body)
    for line in layer.maps.get("port_map", []):
        end = _number(line, "internal_layer_id"), _number(line, "internal_port_id")
        line["internal_layer_id"] = str(endpoints.input(*end) if line["tag"] == "input" else endpoints.result(*end))
    for line in layer.maps.get("back_edges", []):
        start, end = (_number(line, "from-layer"), _number(line, "from-port")), _ends_of(line)
        line["from-layer"], line["to-layer"] = str(endpoints.result(*start)), str(endpoints.input(*end))


class _Endpoints:
    def __init__(self, body: RawGraph) -> None:
        self.body = body
        self.layers = {layer.id: layer for layer in body.layers}
        self.next = 1 + max(self.layers, default=0)
        self.known: dict[tuple[str, int, int], int] = {}

    def input(self, id: int, port: int) -> int:
        """The id of the Input layer that feeds an input port of a layer of the body; added on first use."""
        key = "Input", id, port
        if key not in self.known:
            fed = self.port(id, port, "input")
            layer = self.add(key)
            layer.outputs.append(RawPort(0, fed.precision, fed.dims, (), fed.line, []))
            self.body.edges.append(RawEdge(layer.id, 0, id, port, fed.line))
        return self.known[key]

    def result(self, id: int, port: int) -> int:
        """The id of the Result of an output port of a layer of the body; added on first use."""
        key = "Result", id, port
        if key not in self.known:
            source = self.port(id, port, "output")
            layer = self.add(key)
            layer.inputs.append(RawPort(0, source.precision, source.dims, (), source.line, []))
            self.body.edges.append(RawEdge(id, port, layer.id, 0, source.line))
        return self.known[key]

    def add(self, key: tuple[str, int, int]) -> RawLayer:
        type, id, _ = key
        neighbour = self.layers[id]
        layer = RawLayer(self.next, f"{neighbour.name}/{type.lower()}_{self.next}", type, "", neighbour.line)
        layer.precision = neighbour.precision
        self.known[key] = layer.id
        self.body.layers.append(layer)
        self.next += 1
        return layer

    def port(self, id: int, port: int, side: str) -> RawPort:
        layer = self.layers.get(id)
        ports = [] if layer is None else layer.inputs if side == "input" else layer.outputs
        match = next((p for p in ports if p.id == port), None)
        if match is None:
            raise ReadError(f"the port map or a back edge names {side} port {port} of layer {id}, absent in the body")
        return match


def _ends_of(line: Line) -> tuple[int, int]:
    return _number(line, "to-layer"), _number(line, "to-port")


def _number(line: Line, key: str) -> int:
    text = line.get(key, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ReadError(f"{key} of the port map or the back edges must be a non-negative integer, found '{text[:40]}'")
    return int(text)
