"""Graphs that the generator of random programs builds, changes and writes as IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from xml.sax.saxutils import quoteattr

from irload.core.element import ElementType
from irload.core.packing import pack
from tests.harness.case import Array, text
from tests.harness.ir import layer_text

Type = tuple[ElementType, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Ref:
    """An output of a layer."""

    layer: int
    port: int = 0


@dataclass(frozen=True)
class Inner:
    """A body of a layer: its graph, and the maps from ports of the layer to its Parameters and Results."""

    graph: Graph
    tag: str
    takes: tuple[tuple[int, int, dict[str, Any]], ...]
    """(port of the layer, position of the Parameter, further attributes of the entry)."""
    gives: tuple[tuple[int, int, dict[str, Any]], ...]
    """(output of the layer or −1, position of the Result, further attributes of the entry)."""
    back: tuple[tuple[int, int], ...] = ()
    """(position of the Result, position of the Parameter)."""


@dataclass(frozen=True)
class Layer:
    """A layer; `types` are the types of its outputs."""

    type: str
    version: str
    data: dict[str, Any]
    inputs: tuple[Ref, ...]
    types: tuple[Type, ...]
    name: str
    constant: Array | None = None
    bodies: tuple[Inner, ...] = ()


@dataclass
class Graph:
    """Layers in topological order, and the inputs of the Results."""

    layers: list[Layer] = field(default_factory=list[Layer])
    results: list[Ref] = field(default_factory=list[Ref])
    dynamic: bool = False
    """True if ports declare no sizes."""
    traits: tuple[str, ...] = ()
    """How to run the program (play.py); stored in the name of the model."""

    def copy(self) -> Graph:
        """A mutable copy of the graph."""
        return replace(self, layers=list(self.layers), results=list(self.results))

    @property
    def parameters(self) -> list[int]:
        """The positions of the Parameters."""
        return [k for k, layer in enumerate(self.layers) if layer.type == "Parameter"]

    def type_of(self, ref: Ref) -> Type:
        """The type of an output."""
        return self.layers[ref.layer].types[ref.port]

    @property
    def work(self) -> int:
        """The number of layers other than Parameters and constants."""
        return sum(layer.type not in ("Parameter", "Const") for layer in self.layers)


class Weights(bytearray):
    """The contents of a weights file. Equal small constants share their bytes, as in files that OpenVINO writes."""

    def __init__(self) -> None:
        super().__init__()
        self._offsets: dict[bytes, int] = {}

    def stored(self, raw: bytes) -> int:
        """Append the bytes of a constant, unless they are stored; return their offset."""
        offset = self._offsets.get(raw)
        if offset is None:
            self += b"\0" * (-len(self) % 8)
            offset = len(self)
            self += raw or b"\0"
            if len(raw) <= 8:
                self._offsets[raw] = offset
        return offset


def ir(graph: Graph) -> tuple[bytes, bytes]:
    """The graph as a model: (XML, weights)."""
    weights = Weights()
    content = _content(graph, weights, graph.dynamic)
    name = "-".join(("program", *graph.traits))
    return f'<?xml version="1.0"?>\n<net name="{name}" version="11">\n{content}</net>\n'.encode(), bytes(weights)


def _content(graph: Graph, weights: Weights, dynamic: bool) -> str:
    lines: list[str] = []
    edges: list[str] = []
    for k, layer in enumerate(graph.layers):
        data = dict(layer.data)
        if layer.constant is not None:
            element, shape = layer.types[0]
            raw = pack(layer.constant, element)
            data = {"element_type": element, "shape": ",".join(map(str, shape)), "offset": weights.stored(raw)}
            data["size"] = max(len(raw), 1)
        attributes = " ".join(f"{name}={quoteattr(text(value))}" for name, value in data.items())
        tail = "".join(_body(layer, inner, weights, dynamic) for inner in layer.bodies)
        unsized = dynamic and layer.type != "Const"
        outputs = [(e.precision, [-1 for _ in shape] if unsized else shape) for e, shape in layer.types]
        line = layer_text(
            k,
            layer.name,
            layer.type,
            layer.version,
            f"<data {attributes}/>" if attributes else "",
            len(layer.inputs),
            outputs,
            tail,
        )
        lines.append(line)
        edges += [_edge(graph, ref, k, n) for n, ref in enumerate(layer.inputs)]
    for n, ref in enumerate(graph.results):
        k = len(graph.layers) + n
        lines.append(layer_text(k, f"out{n}", "Result", "opset1", "", 1, []))
        edges.append(_edge(graph, ref, k, 0))
    newline = "\n"
    return f"<layers>\n{newline.join(lines)}\n</layers>\n<edges>\n{newline.join(edges)}\n</edges>\n"


def _edge(graph: Graph, source: Ref, layer: int, port: int) -> str:
    before = len(graph.layers[source.layer].inputs)
    return f'<edge from-layer="{source.layer}" from-port="{before + source.port}" to-layer="{layer}" to-port="{port}"/>'


def _body(layer: Layer, inner: Inner, weights: Weights, dynamic: bool) -> str:
    """A body and its maps."""
    prefix = inner.tag.removesuffix("body")
    parameters, results = inner.graph.parameters, len(inner.graph.layers)
    lines = [_line("input", port, parameters[at], more) for port, at, more in inner.takes]
    for port, at, more in inner.gives:
        lines.append(_line("output", port if port < 0 else len(layer.inputs) + port, results + at, more))
    back = "".join(f'<edge from-layer="{results + a}" to-layer="{parameters[b]}"/>' for a, b in inner.back)
    back = f"<back_edges>{back}</back_edges>" if back else ""
    content = _content(inner.graph, weights, dynamic)
    return f"<{prefix}port_map>{''.join(lines)}</{prefix}port_map>{back}<{inner.tag}>{content}</{inner.tag}>"


def _line(tag: str, external: int, internal: int, more: dict[str, Any]) -> str:
    attributes = "".join(f' {k}="{v}"' for k, v in more.items())
    return f'<{tag} external_port_id="{external}" internal_layer_id="{internal}"{attributes}/>'


def pruned(graph: Graph) -> Graph:
    """The graph without unused layers and unused Parameters, but with at least one Parameter."""
    needed = {r.layer for r in graph.results}
    needed.update(k for k, layer in enumerate(graph.layers) if layer.type == "Assign")
    variables = {layer.data["variable_id"] for layer in graph.layers if layer.type == "Assign"}
    for k in range(len(graph.layers) - 1, -1, -1):
        layer = graph.layers[k]
        if layer.type == "ReadValue" and layer.data["variable_id"] in variables:
            needed.add(k)
        if k in needed:
            needed.update(r.layer for r in layer.inputs)
    if not any(k in needed for k in graph.parameters):
        needed.update(graph.parameters[:1])
    return subgraph(graph, sorted(needed))


def subgraph(graph: Graph, layers: Sequence[int]) -> Graph:
    """The graph of these layers, which must not depend on other layers."""
    at = {old: new for new, old in enumerate(layers)}

    def moved(refs: Sequence[Ref]) -> tuple[Ref, ...]:
        return tuple(Ref(at[r.layer], r.port) for r in refs)

    chosen = [replace(graph.layers[k], inputs=moved(graph.layers[k].inputs)) for k in layers]
    return replace(graph, layers=chosen, results=list(moved(graph.results)))


def uses(graph: Graph) -> Iterator[Ref]:
    """Every use of an output, by layers and by Results."""
    for layer in graph.layers:
        yield from layer.inputs
    yield from graph.results
