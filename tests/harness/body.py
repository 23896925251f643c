"""The XML of bodies: graphs inside a layer, with the port maps and back edges that wire them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from irload.core.element import ElementType, element_of_dtype
from irload.core.packing import pack
from tests.harness.case import text
from tests.harness.ir import layer_text


@dataclass(frozen=True)
class Value:
    """An output of a layer of a body."""

    layer: int
    port: int


class Body:
    """A graph under construction. Constants go to `weights`, which nested bodies and the outer case share."""

    def __init__(self, weights: bytearray) -> None:
        self.weights = weights
        self._layers: list[str] = []
        self._edges: list[str] = []

    def parameter(self, element: ElementType, shape: str) -> Value:
        """A Parameter; `shape` in the grammar of the IR."""
        return self._add("Parameter", "opset1", {"element_type": element, "shape": shape}, [], 1)[0]

    def constant(self, value: Any, element: ElementType | None = None) -> Value:
        """A Const."""
        array = np.asarray(value, None if element is None else element.dtype)
        element = element or element_of_dtype(array.dtype)
        raw = pack(array, element) or b"\0"
        shape = ",".join(map(str, array.shape))
        data = {"element_type": element, "shape": shape, "offset": len(self.weights), "size": len(raw)}
        self.weights += raw
        return self._add("Const", "opset1", data, [], 1)[0]

    def op(self, type: str, *inputs: Value, version: str = "opset1", **data: Any) -> Value:
        """A layer of one output."""
        return self._add(type, version, data, inputs, 1)[0]

    def nested(
        self, type: str, version: str, inputs: Sequence[Value], outputs: int, tail: str, **data: Any
    ) -> list[Value]:
        """A layer with bodies, given as the XML `tail`."""
        return self._add(type, version, data, inputs, outputs, tail)

    def loop(
        self,
        inputs: Sequence[Value],
        body: Body,
        entries: Sequence[str],
        edges: Sequence[tuple[Value, Value]],
        outputs: int,
    ) -> None:
        """A Loop whose outputs are the next results of this graph. `entries`: of its port map; `edges`: back edges."""
        tail = port_map(*entries) + back_edges(*edges) + body.xml()
        for output in self.nested("Loop", "opset5", inputs, outputs, tail):
            self.result(output)

    def result(self, value: Value) -> Value:
        """A Result; port maps and back edges refer to its layer."""
        return self._add("Result", "opset1", {}, [value], 0)[0]

    def xml(self, tag: str = "body") -> str:
        """The XML element."""
        return f"<{tag}>{self._content()}</{tag}>"

    def model(self) -> tuple[bytes, bytes]:
        """(XML, weights) of a model that consists of this graph."""
        text = f'<?xml version="1.0"?><net name="case" version="11">{self._content()}</net>'
        return text.encode(), bytes(self.weights) or b"\0"

    def _content(self) -> str:
        return f"<layers>{''.join(self._layers)}</layers><edges>{''.join(self._edges)}</edges>"

    def _add(
        self, type: str, version: str, data: dict[str, Any], inputs: Sequence[Value], outputs: int, tail: str = ""
    ) -> list[Value]:
        id, count = len(self._layers), len(inputs)
        attributes = " ".join(f"{name}={quoteattr(text(value))}" for name, value in data.items())
        body = f"<data {attributes}/>" if attributes else ""
        self._layers.append(layer_text(id, f"l{id}", type, version, body, count, [("FP32", ())] * outputs, tail))
        for k, value in enumerate(inputs):
            ends = f'from-layer="{value.layer}" from-port="{value.port}" to-layer="{id}" to-port="{k}"'
            self._edges.append(f"<edge {ends}/>")
        return [Value(id, count + k) for k in range(max(outputs, 1))]


def input_entry(external: int, inner: Value, **rest: Any) -> str:
    """An entry of a port map: an input port feeds a Parameter. `rest`: axis, start, end, stride, part_size, purpose."""
    return _line("input", external, inner, rest)


def output_entry(external: int, inner: Value, **rest: Any) -> str:
    """An entry of a port map: a Result feeds an output port."""
    return _line("output", external, inner, rest)


def port_map(*lines: str, tag: str = "port_map") -> str:
    """The element around the entries of `input_entry` and `output_entry`."""
    return f"<{tag}>{''.join(lines)}</{tag}>"


def back_edges(*pairs: tuple[Value, Value]) -> str:
    """The element for pairs (Result, Parameter)."""
    edges = (f'<edge from-layer="{a.layer}" to-layer="{b.layer}"/>' for a, b in pairs)
    return f"<back_edges>{''.join(edges)}</back_edges>"


def _line(tag: str, external: int, inner: Value, rest: dict[str, Any]) -> str:
    more = "".join(f' {k}="{v}"' for k, v in rest.items())
    return f'<{tag} external_port_id="{external}" internal_layer_id="{inner.layer}"{more}/>'
