"""The XML of an IR, streamed through lxml into raw layers. Rejects what no real file holds and what could hurt."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from lxml import etree

from irload.errors import IRError, ReadError, Where
from irload.read.names import split_names
from irload.read.raw import RawEdge, RawGraph, RawLayer, RawMean, RawNet, RawPort, RawPreprocess
from irload.safety import limits

Element = Any  # lxml ships no types
Report = Callable[[IRError], None]

BODIES = ("body", "then_body", "else_body")
MAPS = ("port_map", "then_port_map", "else_port_map", "back_edges")


def raise_first(error: IRError) -> None:
    """The strict report: the first fault ends the reading."""
    raise error


def read_xml(source: str | Path | bytes, report: Report = raise_first) -> RawNet:
    """The raw net of a path or of the bytes of an XML file. Faults go to `report`, which may raise or collect.

    Raises ReadError where nothing can be read at all: no XML, no `net`, a version that is no longer IR.
    """
    name = None if isinstance(source, bytes) else str(source)
    with _open(source) as stream:
        return _Reader(name, report).read(stream)


def _open(source: str | Path | bytes) -> BinaryIO:
    if isinstance(source, bytes):
        return BytesIO(source)
    try:
        # lxml would quietly decompress a file it opens by name, so it is handed an open one.
        stream = open(source, "rb")  # noqa: SIM115 - the caller closes it
        size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise ReadError(f"cannot open {source}: {error.strerror}") from None
    if size > limits.xml_bytes:
        stream.close()
        raise ReadError(f"{source} has {size} bytes; the limit for the XML is {limits.xml_bytes}")
    return stream


class _Reader:
    """Walks the events of one file. A stack of graphs mirrors the nesting of bodies."""

    def __init__(self, file: str | None, report: Report) -> None:
        self.file = file
        self.report = report
        self.net = RawNet()
        self.graphs: list[RawGraph] = []
        self.bodies: list[dict[str, RawGraph]] = []
        self.count = 0

    def read(self, stream: BinaryIO) -> RawNet:
        root: Element = None
        try:
            events = etree.iterparse(
                stream,
                events=("start", "end"),
                resolve_entities=False,
                no_network=True,
                load_dtd=False,
                remove_comments=True,
            )
            for event, element in events:
                if root is None:
                    root = element
                    self.open_net(element)
                if event == "start":
                    self.start(element)
                else:
                    self.end(element)
        except etree.XMLSyntaxError as error:
            raise ReadError(f"is not well-formed XML: {error.msg}", Where(self.file, error.lineno)) from None
        except (OSError, UnicodeError) as error:
            raise ReadError(f"cannot be read as XML: {error}", Where(self.file)) from None
        if root is None:
            raise ReadError("is empty", Where(self.file))
        return self.net

    # -- events ---------------------------------------------------------------------------------------------------------

    def open_net(self, root: Element) -> None:
        if root.getroottree().docinfo.doctype:
            raise ReadError("has a DOCTYPE, which no IR needs; remove it", Where(self.file, 1))
        if str(root.tag).lower() != "net":
            raise ReadError(
                f"is no OpenVINO IR: its root element is <{root.tag}>, expected <net>",
                Where(self.file, root.sourceline),
            )
        version = root.get("version")
        if version not in ("10", "11"):
            raise ReadError(
                f"is IR version {version or '(none)'}; versions 10 and 11 can be read. "
                "Convert the model anew from its original framework",
                Where(self.file, root.sourceline),
            )
        self.net.name, self.net.version = root.get("name", ""), int(version)

    def start(self, element: Element) -> None:
        if element.tag == "net" or element.tag in BODIES:
            self.graphs.append(RawGraph())
            if len(self.graphs) > limits.nesting:
                raise ReadError(f"bodies are nested more than {limits.nesting} deep", self.where(element))
        elif element.tag == "layer":
            self.bodies.append({})

    def end(self, element: Element) -> None:
        tag = element.tag
        if tag == "layer" and self.bodies:
            layer = self.layer(element, self.bodies.pop())
            if layer is not None and self.graphs:
                self.graphs[-1].layers.append(layer)
            self.forget(element)
        elif tag == "edge" and self.graphs and _parent_tag(element) == "edges":
            edge = self.edge(element)
            if edge is not None:
                self.graphs[-1].edges.append(edge)
            self.forget(element)
        elif tag in BODIES and self.bodies:
            self.bodies[-1][tag] = self.graphs.pop()
            element.clear(keep_tail=False)  # its siblings are the ports and port maps of the layer, still to be read
        elif tag == "net":
            self.net.graph = self.graphs.pop()
        elif _parent_tag(element) == "net":
            self.metadata(tag, element)

    def metadata(self, tag: str, element: Element) -> None:
        if tag == "rt_info":
            self.net.rt_info = cast(dict[str, Any], _tree(element))
        elif tag in ("meta_data", "quantization_parameters") and tag not in self.net.rt_info:
            self.net.rt_info.setdefault(tag, _tree(element))
        elif tag == "pre-process":
            self.net.preprocess = self.preprocess(element)

    @staticmethod
    def forget(element: Element) -> None:
        """Free what has been read, so that memory stays flat on files of any length."""
        element.clear(keep_tail=False)
        while element.getprevious() is not None:
            del element.getparent()[0]

    # -- elements -------------------------------------------------------------------------------------------------------

    def layer(self, element: Element, bodies: dict[str, RawGraph]) -> RawLayer | None:
        self.count += 1
        if self.count > limits.layers:
            raise ReadError(f"has more than {limits.layers} layers", self.where(element))
        try:
            layer = RawLayer(
                id=self.integer(element, "id"),
                name=self.required(element, "name"),
                type=self.required(element, "type"),
                version=element.get("version", ""),
                line=element.sourceline,
                bodies=bodies,
            )
        except ReadError as error:
            self.report(error)
            return None
        names = element.get("output_names")
        layer.output_names = None if names is None else split_names(names)
        for child in element:
            try:
                self.layer_child(layer, child)
            except IRError as error:
                self.report(error.at(Where(self.file, child.sourceline, layer.id, layer.name, layer.type)))
        return layer

    def layer_child(self, layer: RawLayer, child: Element) -> None:
        tag = child.tag
        if tag == "data":
            if len(child.attrib) > limits.attributes:
                raise ReadError(f"has {len(child.attrib)} attributes; the limit is {limits.attributes}")
            layer.data.update(child.attrib)
        elif tag in ("input", "output"):
            ports = layer.inputs if tag == "input" else layer.outputs
            ports += [self.port(p, is_output=tag == "output") for p in child if p.tag == "port"]
        elif tag == "rt_info":
            layer.rt_info = [dict(a.attrib) for a in child]
        elif tag in MAPS:
            layer.maps[tag] = [{"tag": e.tag, "line": str(e.sourceline), **e.attrib} for e in child]
        elif tag not in BODIES:
            self.net.warnings.append(f"line {child.sourceline}: unknown element <{tag}> in layer '{layer.name}'")

    def port(self, element: Element, *, is_output: bool) -> RawPort:
        precision = element.get("precision")
        if precision is None and is_output:
            raise ReadError("an output port has no precision", self.where(element))
        dims: list[int] = []
        for dim in element:
            if dim.tag == "dim":
                text = (dim.text or "").strip()
                if not (text == "-1" or (text.isascii() and text.isdigit())):
                    raise ReadError(f"dimension '{text}' of a port must be an integer of at least -1", self.where(dim))
                dims.append(int(text))
        names = split_names(element.get("names", ""))
        port = self.integer(element, "id") if is_output or element.get("id") else 0
        return RawPort(port, precision, tuple(dims) if dims else None, names, element.sourceline)

    def edge(self, element: Element) -> RawEdge | None:
        try:
            ends = [self.integer(element, key) for key in ("from-layer", "from-port", "to-layer", "to-port")]
        except ReadError as error:
            self.report(error)
            return None
        return RawEdge(*ends, line=element.sourceline)

    def preprocess(self, element: Element) -> RawPreprocess:
        means: list[RawMean] = []
        for channel in element.iter("channel"):
            for mean in channel.iter("mean"):
                if mean.get("value") is not None:
                    means.append(RawMean(float(mean.get("value"))))
                else:
                    means.append(RawMean(None, self.integer(mean, "offset"), self.integer(mean, "size")))
        return RawPreprocess(element.get("reference-layer-name", ""), means, element.sourceline)

    # -- attributes -----------------------------------------------------------------------------------------------------

    def where(self, element: Element) -> Where:
        return Where(self.file, element.sourceline)

    def required(self, element: Element, key: str) -> str:
        value = element.get(key)
        if value is None:
            raise ReadError(f"<{element.tag}> has no attribute {key}", self.where(element))
        return value

    def integer(self, element: Element, key: str) -> int:
        text = self.required(element, key)
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise ReadError(f"{key}='{text[:40]}' of <{element.tag}> is no non-negative integer", self.where(element))
        return int(text)


def _parent_tag(element: Element) -> str | None:
    parent = element.getparent()
    return None if parent is None else parent.tag


def _tree(element: Element) -> dict[str, Any] | str:
    """The tree of rt_info and meta_data: `<key value="…"/>`, nested elements, or `<info name="odd key" value="…"/>`."""
    if element.get("value") is not None and not len(element):
        return element.get("value")
    return {child.get("name", child.tag): _tree(child) for child in element if isinstance(child.tag, str)}
