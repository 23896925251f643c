"""Correcting the ports of an IR file and nothing else: every other byte of it stays as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.graph import Graph, Model, Node
from irload.write.atomic import write_atomically

__all__ = ["correct_ports", "write_corrected"]

PortKey = tuple[tuple[int, ...], str, int]
"""(ids of the layers from the outermost to this one, with −1 − k before body k; side; position in the list)."""

_BODIES = ("body", "then_body", "else_body")


@dataclass(slots=True)
class _Span:
    """Where a port stands in the file: its start tag, and what lies between start and end tag."""

    start: int
    inner: int = 0
    end: int = 0
    empty: bool = False


@dataclass(slots=True)
class _Locator:
    """Finds the byte range of every port. Expat rather than lxml, as only it tells byte offsets."""

    source: bytes
    spans: dict[PortKey, _Span] = field(default_factory=dict[PortKey, _Span])
    path: list[int] = field(default_factory=list[int])
    side: list[str] = field(default_factory=list[str])
    count: int = 0
    open: _Span | None = None

    def locate(self) -> dict[PortKey, _Span]:
        parser = expat.ParserCreate()
        parser.StartElementHandler = lambda tag, attributes: self.start(parser, tag, attributes)
        parser.EndElementHandler = lambda tag: self.end(parser, tag)
        parser.Parse(self.source, True)
        return self.spans

    def start(self, parser: expat.XMLParserType, tag: str, attributes: Mapping[str, str]) -> None:
        at = parser.CurrentByteIndex
        if tag == "layer":
            self.path.append(int(attributes["id"]))
        elif tag in _BODIES:
            self.path.append(-1 - _BODIES.index(tag))
        elif tag in ("input", "output"):
            # The lines of a port map have the same tags as the lists of ports.
            self.side.append("" if "external_port_id" in attributes else tag)
            self.count = 0
        elif tag == "port" and self.side and self.side[-1]:
            self.open = _Span(at, self.after_tag(at))
            self.spans[(tuple(self.path), self.side[-1], self.count)] = self.open
            self.count += 1

    def end(self, parser: expat.XMLParserType, tag: str) -> None:
        if tag == "layer" or tag in _BODIES:
            self.path.pop()
        elif tag in ("input", "output"):
            self.side.pop()
        elif tag == "port" and self.open is not None:
            at = parser.CurrentByteIndex
            self.open.empty = self.source[self.open.inner - 2 : self.open.inner] == b"/>"
            self.open.end = self.open.inner if self.open.empty else at
            self.open = None

    def after_tag(self, at: int) -> int:
        """The offset behind the start tag at `at`; a `>` inside a quoted value does not end it."""
        quote = 0
        for k in range(at, len(self.source)):
            c = self.source[k]
            if quote:
                quote = 0 if c == quote else quote
            elif c in b"\"'":
                quote = c
            elif c == 0x3E:
                return k + 1
        return len(self.source)


def correct_ports(source: bytes, model: Model, types: Mapping[object, TensorType]) -> tuple[bytes, int]:
    """The XML text with every port's dims and precision as inferred, and the number of ports that changed.

    `model` and `types` are what reading and inferring this very text gave. Ports of which inference knows no type or
    rank keep theirs.
    """
    wanted: dict[PortKey, TensorType] = {}
    _collect(model, types, (), wanted)
    edits: list[tuple[int, int, bytes]] = []
    for key, span in _Locator(source).locate().items():
        tensor = wanted.get(key)
        if tensor is not None:
            text = source[span.start : span.inner], source[span.inner : span.end]
            fixed = _corrected(text[0], text[1], tensor, empty=span.empty)
            if fixed is not None:
                edits.append((span.start, span.end, fixed))
    pieces: list[bytes] = []
    at = 0
    for start, end, text in sorted(edits):
        pieces += [source[at:start], text]
        at = end
    return b"".join([*pieces, source[at:]]), len(edits)


def write_corrected(path: str | Path, target: str | Path, model: Model, types: Mapping[object, TensorType]) -> int:
    """Write the file at `path`, its ports corrected, to `target`. Returns the number of ports that changed."""
    fixed, count = correct_ports(Path(path).read_bytes(), model, types)
    write_atomically(target, lambda stream: stream.write(fixed))
    return count


def _collect(
    graph: Graph, types: Mapping[object, TensorType], path: tuple[int, ...], wanted: dict[PortKey, TensorType]
) -> None:
    for node in graph.nodes:
        here = (*path, node.id)
        for side, tensors in (("input", _fed(node, types)), ("output", [types.get(o) for o in node.outputs])):
            for k, tensor in enumerate(tensors):
                if tensor is not None:
                    wanted[(here, side, k)] = tensor
    for node, name, body in graph.subgraphs():
        _collect(body, types, (*path, node.id, -1 - _BODIES.index(name)), wanted)


def _fed(node: Node, types: Mapping[object, TensorType]) -> Sequence[TensorType | None]:
    complete = len(node.inputs) == len(node.declared_inputs)
    return [types.get(i) for i in node.inputs] if complete else []


def _corrected(tag: bytes, inner: bytes, tensor: TensorType, *, empty: bool) -> bytes | None:
    """The port's text with the inferred precision and dims; None where it already says so."""
    fixed_tag, fixed_inner = tag, inner
    told = re.search(rb"""\bprecision\s*=\s*(["'])(.*?)\1""", tag)
    if (
        told
        and tensor.element is not dynamic
        and told[2].decode() not in (tensor.element.precision, tensor.element.name)
    ):
        fixed_tag = (
            tag[: told.start()] + b"precision=" + quoteattr(tensor.element.precision).encode() + tag[told.end() :]
        )
    if tensor.rank is not None:
        dims = [str(d.lo) if d.is_static else "-1" for d in tensor.shape]
        found = [d.strip().decode() for d in re.findall(rb"<dim>(.*?)</dim>", inner, re.S)]
        if found != dims:
            fixed_inner = _with_dims(inner, dims)
    if (fixed_tag, fixed_inner) == (tag, inner):
        return None
    if not empty:
        return fixed_tag + fixed_inner
    if not fixed_inner:
        return fixed_tag
    return fixed_tag[:-2].rstrip() + b">" + fixed_inner + b"</port>"


def _with_dims(inner: bytes, dims: Sequence[str]) -> bytes:
    """The content of a port with other dims, in the layout that the old ones had."""
    old = list(re.finditer(rb"<dim>.*?</dim>", inner, re.S))
    if len(old) == len(dims):
        for match, dim in reversed(list(zip(old, dims, strict=True))):
            inner = inner[: match.start()] + f"<dim>{dim}</dim>".encode() + inner[match.end() :]
        return inner
    gap = inner[: old[0].start()] if old else b""
    head, tail = (inner[: old[0].start()], inner[old[-1].end() :]) if old else (b"", inner)
    return head + gap.join(f"<dim>{d}</dim>".encode() for d in dims) + tail
