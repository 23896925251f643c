"""Rewrites a graph: each legacy layer by the function for its type, then results for outputs without consumers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from irload.errors import IRError, ReadError, Where
from irload.read.faults import OnFault
from irload.read.legacy.bodies import add_endpoints
from irload.read.legacy.layer import LegacyLayer, NewLayer, Wire, widened
from irload.read.legacy.table import rewrite_of
from irload.read.raw import RawEdge, RawGraph, RawLayer, RawPort

Ends = tuple[int, int]
"""The id of a layer and of one of its output ports."""


def rewritten(graph: RawGraph, file: str | None, report: OnFault, log: list[str], *, is_body: bool = False) -> RawGraph:
    """The graph as operations. A line is appended to `log` for each layer that is not a single operation of its type.

    Outputs without consumers become results of the model. The results of bodies are added by `add_endpoints`.
    """
    return _Rewriting(graph, file, report, log).graph(with_results=not is_body)


class _Rewriting:
    def __init__(self, old: RawGraph, file: str | None, report: OnFault, log: list[str]) -> None:
        self.old = old
        self.file = file
        self.report = report
        self.log = log
        self.new = RawGraph()
        self.ids: Iterator[int] = count(1 + max((layer.id for layer in old.layers), default=0))
        self.layers = {layer.id: layer for layer in old.layers}
        self.sources = {(e.to_layer, e.to_port): e for e in old.edges}
        self.moved: dict[Ends, Ends] = {}
        """Outputs of legacy layers → the outputs of other layers that replace them."""

    def graph(self, *, with_results: bool) -> RawGraph:
        """Rewrite every layer."""
        for layer in self.old.layers:
            try:
                for name, body in layer.bodies.items():
                    add_endpoints(layer, body)
                    layer.bodies[name] = rewritten(body, self.file, self.report, self.log, is_body=True)
                self.layer(layer)
            except IRError as error:
                self.report(error.at(Where(self.file, layer.line, layer.id, layer.name, layer.type)))
                layer.is_faulty = True
                self.keep_unknown(layer)
        if with_results:
            self.results()
        for edge in self.new.edges:
            end = edge.from_layer, edge.from_port
            while end in self.moved:
                end = self.moved[end]
            edge.from_layer, edge.from_port = end
        return self.new

    def layer(self, raw: RawLayer) -> None:
        rewrite = rewrite_of(raw.type)
        if rewrite is None:
            self.keep_unknown(raw)
            return
        layer = LegacyLayer(raw, [self.source(raw, port) for port in raw.inputs], self.layers)
        try:
            result = rewrite(layer)
        except (ArithmeticError, LookupError, ValueError):
            raise ReadError(f"has ports or attributes that do not fit its type {raw.type}") from None
        outputs = [result] if isinstance(result, Wire) else list(result)
        if len(outputs) < len(raw.outputs):
            raise ReadError(f"has {len(raw.outputs)} outputs, expected {len(outputs)}")
        final = _final(layer.operations, outputs, raw)
        numbers: dict[NewLayer, int] = {new: raw.id if new is final else next(self.ids) for new in layer.operations}
        for new, id in numbers.items():
            self.add(new, id, numbers, raw, is_final=new is final)
        if final is None:
            for port, wire in zip(raw.outputs, outputs, strict=False):
                self.moved[raw.id, port.id] = _end(wire, numbers, raw)
        types = [new.type for new in layer.operations if new.type != "Const"]
        if types != [raw.type]:
            self.log.append(f"{raw.type} '{raw.name}' → {', '.join(types) or 'nothing'}")

    def source(self, raw: RawLayer, port: RawPort) -> Wire | None:
        edge = self.sources.get((raw.id, port.id))
        return None if edge is None else Wire(edge.from_layer, edge.from_port)

    def add(self, new: NewLayer, id: int, numbers: dict[NewLayer, int], raw: RawLayer, *, is_final: bool) -> None:
        """Add a new layer with its ports and the edges to it."""
        layer = RawLayer(id, raw.name if is_final else new.name, new.type, new.opset, raw.line, dict(new.data))
        layer.values, layer.bodies, layer.maps, layer.rt_info = new.values, new.bodies, new.maps, [*new.rt_info]
        if is_final:
            layer.outputs = [_declared(port, raw) for port in raw.outputs]
        else:
            layer.outputs = [_inner_port(k, raw) for k in range(new.outputs)]
        first = 1 + max((port.id for port in layer.outputs), default=-1)
        for k, wire in enumerate(new.inputs, first):
            layer.inputs.append(_inner_port(k, raw))
            self.new.edges.append(RawEdge(*_end(wire, numbers, raw), id, k, raw.line))
        self.new.layers.append(layer)

    def keep_unknown(self, raw: RawLayer) -> None:
        """Keep a layer that cannot be rewritten, as an unknown operation. Loading warns of it."""
        raw.version = "legacy"
        raw.outputs = [_declared(port, raw) for port in raw.outputs]
        self.new.layers.append(raw)
        self.new.edges.extend(e for (to, _), e in self.sources.items() if to == raw.id)

    def results(self) -> None:
        """Add a Result for each output without consumers."""
        consumed = {(e.from_layer, e.from_port) for e in self.old.edges}
        for raw in self.old.layers:
            for port in raw.outputs:
                if (raw.id, port.id) not in consumed:
                    id = next(self.ids)
                    layer = RawLayer(id, f"{raw.name}/result", "Result", "opset1", raw.line)
                    layer.inputs = [_inner_port(0, raw)]
                    self.new.layers.append(layer)
                    self.new.edges.append(RawEdge(raw.id, port.id, id, 0, raw.line))


def _final(operations: Sequence[NewLayer], outputs: Sequence[Wire], raw: RawLayer) -> NewLayer | None:
    """The new layer that has exactly the outputs of the legacy layer, and takes over its id, name and ports."""
    source = outputs[0].source if outputs else (operations[-1] if operations else None)
    if not isinstance(source, NewLayer) or source not in operations or source.outputs != len(raw.outputs):
        return None
    return source if [Wire(source, k) for k in range(len(outputs))] == list(outputs) else None


def _end(wire: Wire, numbers: dict[NewLayer, int], raw: RawLayer) -> Ends:
    """The id and the port of a wire. The layer with the legacy id has the legacy ports."""
    if not isinstance(wire.source, NewLayer):
        return wire.source, wire.index
    id = numbers[wire.source]
    return id, raw.outputs[wire.index].id if id == raw.id else wire.index


def _inner_port(id: int, raw: RawLayer) -> RawPort:
    return RawPort(id, None, None, (), raw.line, [], is_declared=False)


def _declared(port: RawPort, raw: RawLayer) -> RawPort:
    """A copy of the declared port, in the precision in which its value is computed."""
    precision = widened((port.precision or raw.precision or "FP32").upper())
    return RawPort(port.id, precision, port.dims, (), port.line, [])
