"""Corrects the ports of an IR file; every other byte is preserved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.errors import InputInvalid, ReadError
from irload.graph import Graph
from irload.model import Model, require_model
from irload.write.atomic import write_atomically

__all__ = ["correct_ports", "corrected"]

_BODIES = ("body", "then_body", "else_body")
_METADATA = ("rt_info", "meta_data", "quantization_parameters", "pre-process")
_ATTRIBUTE = re.compile(rb"""([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")
_START_TAG = re.compile(rb"""<[^\s/>]+(?:\s+[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")

PortKey = tuple[tuple[int, ...], str, int]
"""(ids of the layers from the outermost to this one, with −1 − k before body k; side; position in the list)."""


def correct_ports(model: Model, path: str | Path, *, force: bool = False) -> int:
    """Write the file that `model` was read from to `path`, with dims and precision of every port as inferred.

    Everything else is preserved byte for byte: formatting, comments, ids, the .bin file. Ports whose rank or element
    type cannot be inferred are unchanged. An existing file is replaced only with `force`; then `path` may be the file
    itself. Returns the number of changed ports. Raises InputInvalid for a model that was read from bytes or reshaped
    since, FileExistsError, OSError.
    """
    require_model(model)
    path = Path(path)
    if model.file is None:
        raise InputInvalid("the model was read from bytes, so there is no file to correct")
    if not force and (path.is_symlink() or path.exists()):
        raise FileExistsError(f"{path} exists already")
    fixed, count = corrected(Path(model.file).read_bytes(), model)
    write_atomically(path, lambda stream: stream.write(fixed))
    return count


def corrected(source: bytes, model: Model) -> tuple[bytes, int]:
    """The XML text `source`, from which `model` was read and inferred, with corrected ports; and their number."""
    types: dict[PortKey, TensorType] = {}
    _collect(model, (), types)
    edits: list[_Edit] = []
    count = 0
    for key, port in _Locator(source).locate().items():
        if key in types:
            changes = [*_precision(source, port, types[key]), *_dims(source, port, types[key])]
            count += bool(changes)
            edits += changes
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda e: e.start):
        pieces += [source[at : edit.start], edit.text]
        at = edit.end
    return b"".join([*pieces, source[at:]]), count


# -- inferred ports ----------------------------------------------------------------------------------------------------


def _collect(graph: Graph, path: tuple[int, ...], types: dict[PortKey, TensorType]) -> None:
    for node in graph.nodes:
        here = (*path, node.id)
        # The position in the list identifies an input only if none is missing.
        fed = node.inputs if len(node.inputs) == len(node.declared_inputs) else []
        for side, outputs in (("input", fed), ("output", node.outputs)):
            for k, output in enumerate(outputs):
                types[(here, side, k)] = output.type
    for node, name, body in graph.subgraphs():
        _collect(body, (*path, node.id, -1 - _BODIES.index(name)), types)


# -- offsets of ports --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Element:
    """Byte offsets of an element: start tag, content, end tag. For `<x/>` the last two are empty."""

    start: int
    inner: int
    inner_end: int = 0
    end: int = 0


@dataclass(slots=True)
class _PortText(_Element):
    """A port, its dims, and the start of the enclosing list."""

    dims: list[_Element] = field(default_factory=list[_Element])
    parent: int = 0


class _Locator:
    """Locates the bytes of every port. Uses expat, since lxml reports no offsets."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.ports: dict[PortKey, _PortText] = {}
        self.layers: list[int] = []
        self.sides: list[tuple[str, int]] = []
        self.counts: Counter[tuple[tuple[int, ...], str]] = Counter()
        self.metadata = 0
        self.port: _PortText | None = None
        self.dim: _Element | None = None
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.opened
        self.parser.EndElementHandler = self.closed

    def locate(self) -> dict[PortKey, _PortText]:
        try:
            self.parser.Parse(self.source, True)
        except expat.ExpatError as error:
            raise ReadError(f"is not well-formed XML: {error}") from None
        return self.ports

    def opened(self, tag: str, attributes: Mapping[str, str]) -> None:
        at = self.parser.CurrentByteIndex
        if tag in _METADATA:
            self.metadata += 1
        elif self.metadata:
            return
        elif tag == "layer":
            text = attributes.get("id", "").strip()
            self.layers.append(int(text) if text.isascii() and text.isdigit() else -1)
        elif tag in _BODIES:
            self.layers.append(-1 - _BODIES.index(tag))
        elif tag in ("input", "output"):
            # The lines of a port map have the same tags as the lists of ports.
            self.sides.append(("" if "external_port_id" in attributes else tag, at))
        elif tag == "port" and self.sides and self.sides[-1][0]:
            side, parent = self.sides[-1]
            place = tuple(self.layers), side
            self.port = _PortText(at, self.after_tag(at), parent=parent)
            # Of layers that share an id only the first is read.
            self.ports.setdefault((*place, self.counts[place]), self.port)
            self.counts[place] += 1
        elif tag == "dim" and self.port is not None:
            self.dim = _Element(at, self.after_tag(at))
            self.port.dims.append(self.dim)

    def closed(self, tag: str) -> None:
        if tag in _METADATA:
            self.metadata -= 1
        elif self.metadata:
            return
        elif tag == "layer" or tag in _BODIES:
            self.layers.pop()
        elif tag in ("input", "output"):
            self.sides.pop()
        elif tag == "port" and self.port is not None:
            self.finish(self.port)
            self.port = None
        elif tag == "dim" and self.dim is not None:
            self.finish(self.dim)
            self.dim = None

    def finish(self, element: _Element) -> None:
        if self.source[element.inner - 2 : element.inner] == b"/>":
            element.inner_end = element.end = element.inner
        else:
            element.inner_end = self.parser.CurrentByteIndex
            element.end = self.source.index(b">", element.inner_end) + 1

    def after_tag(self, at: int) -> int:
        """The offset after the start tag at `at`; a `>` inside a quoted value does not end it."""
        tag = _START_TAG.match(self.source, at)
        return tag.end() if tag else len(self.source)


# -- edits -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: bytes


def _precision(source: bytes, port: _PortText, tensor: TensorType) -> list[_Edit]:
    """The edit that sets the port's `precision` to the element type; a port without one is unchanged."""
    element = tensor.element
    for match in _ATTRIBUTE.finditer(source, port.start, port.inner):
        precision = match[2][1:-1].decode("utf-8", "replace")
        if match[1] == b"precision" and element is not dynamic and precision not in (element.precision, element.name):
            return [_Edit(match.start(2) + 1, match.end(2) - 1, element.precision.encode())]
    return []


def _dims(source: bytes, port: _PortText, tensor: TensorType) -> list[_Edit]:
    """The edits that set the port's dims to the shape, in the formatting of the file."""
    if tensor.rank is None:
        return []
    dims = [(str(d.lo) if d.is_static else "-1").encode() for d in tensor.shape]
    if len(port.dims) == len(dims):
        pairs = zip(port.dims, dims, strict=True)
        return [_dim(source, d, text) for d, text in pairs if source[d.inner : d.inner_end].strip() != text]
    written = [b"<dim>%b</dim>" % text for text in dims]
    if port.dims:
        first, last = port.dims[0].start, port.dims[-1].end
        gap = _blank_before(source, first)
        if written:
            return [_Edit(first, last, gap.join(written))]
        rest = source[port.inner : first] + source[last : port.inner_end]
        if rest.strip() or not gap:
            return [_Edit(first - len(gap), last, b"")]
        return [_Edit(port.inner - 1, port.end, b" />")]
    # The port has no dims: indent them relative to the port as the port is indented relative to its list.
    here, around = _blank_before(source, port.start), _blank_before(source, port.parent)
    gap = here + here.removeprefix(around)
    text = gap + gap.join(written)
    if port.end != port.inner:
        text += b"" if source[port.inner : port.inner_end].lstrip(b" \t\r").startswith(b"\n") else here
        return [_Edit(port.inner, port.inner, text)]
    slash = len(source[: port.inner - 2].rstrip())
    return [_Edit(slash, port.inner, b">" + text + here + b"</port>")]


def _dim(source: bytes, dim: _Element, text: bytes) -> _Edit:
    if dim.end == dim.inner:
        return _Edit(dim.start, dim.end, b"<dim>%b</dim>" % text)
    old = source[dim.inner : dim.inner_end]
    start = dim.inner + len(old) - len(old.lstrip())
    return _Edit(start, start + len(old.strip()), text)


def _blank_before(source: bytes, at: int) -> bytes:
    """The white space before offset `at`, back to the end of the previous line."""
    start = at
    while start and source[start - 1 : start] in (b" ", b"\t"):
        start -= 1
    if source[start - 1 : start] == b"\n":
        start -= 2 if source[start - 2 : start - 1] == b"\r" else 1
        return source[start:at]
    return source[at:at]
