"""The XML of an IR, streamed through lxml into raw layers. Rejects constructs that no IR contains."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from irload.core.pause import uncollected
from irload.errors import IRError, LimitExceeded, ReadError, Where
from irload.read.elements import BODIES, Element, Elements
from irload.read.faults import OnFault, counted, raise_first
from irload.read.metadata import OLD, check_old, preprocess, tree
from irload.read.prolog import BOM, NO_IR, encoding, root_tag
from irload.read.raw import RawGraph, RawNet
from irload.safety.files import HEAD, open_regular
from irload.safety.limits import DEFAULT, Deadline, Limits

__all__ = ["OnFault", "raise_first", "read_xml"]

# Affects only the number of calls of the parser.
CHUNK = 1 << 16  # pragma: no mutate
_PARTS = ("layers", "edges", "rt_info", *OLD, "pre-process", "statistics")
VERSIONS = (*range(2, 8), 10, 11)
_TAGS = ("layer", "edge", *BODIES, "rt_info", *OLD, "pre-process")


def read_xml(
    source: str | Path | bytes, report: OnFault = raise_first, limits: Limits = DEFAULT, name: str | None = None
) -> RawNet:
    """Read the raw net from a path or from the bytes of an XML file. Faults go to `report`, which may raise or collect.

    `name` names the file if its bytes are given. Raises ReadError if nothing can be read: no XML, no `net`, an
    unsupported version; LimitExceeded if the file exceeds `limits`.
    """
    name = name if isinstance(source, bytes) else str(source)
    try:
        with _open(source, limits) as stream, uncollected():
            return _Reader(name, counted(report), limits).read(stream)
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}", Where(name)) from None
    except IRError as error:
        path = Path(name or "")
        if path.suffix.lower() == ".bin" and error.message.startswith(NO_IR):
            beside = path.with_suffix(".xml")
            error.message += f". A .bin holds the weights; the model is {beside if beside.exists() else 'an .xml'}"
        raise error.at(Where(name)) from None


def _open(source: str | Path | bytes, limits: Limits) -> BinaryIO:
    if isinstance(source, bytes):
        stream, size = io.BytesIO(source), len(source)
    else:
        descriptor, size = open_regular(source, "the model")
        stream = os.fdopen(descriptor, "rb")
    if size > limits.xml_bytes:
        stream.close()
        raise limits.exceeded("xml_bytes", f"the XML has {size} bytes")
    return stream


def _syntax(error: etree.XMLSyntaxError, *, ended: bool) -> str:
    """Return the message for a syntax error; `ended`: the parser reported it only at the end of the file."""
    line, column = error.position
    fact = error.msg.removesuffix(f", line {line}, column {column}")
    hint = ". The XML ends here; the file may be truncated" if ended else ""
    return f"is not well-formed XML at column {column}: {fact}{hint}"


class _Reader:
    """Processes the events of one file. A stack of graphs mirrors the nesting of bodies."""

    def __init__(self, file: str | None, report: OnFault, limits: Limits) -> None:
        self.limits = limits
        self.deadline = Deadline(limits)
        self.file = file
        self.net = RawNet()
        self.elements = Elements(file, self.net, report, limits)
        self.graphs: list[RawGraph] = [self.net.graph]
        self.bodies: list[dict[str, RawGraph]] = []
        self.root: Element = None
        self.old: dict[str, Any] = {}
        self.has_rt_info = False
        self.metadata_depth = 0
        self.layers = self.edges = 0
        self.held = [0]
        """For each level of bodies, the bytes read since one of its layers or edges was freed."""
        self.tops: list[Element] = []
        """For each level, the element that contains its graph."""
        self.lowest = len(self.held)
        self.swept: Element = None

    def read(self, stream: BinaryIO) -> RawNet:
        head = stream.read(HEAD)
        tag = root_tag(head)
        if tag.lower() != "net":
            raise ReadError(f"is not an OpenVINO IR: its root element is <{tag}>, expected <net>")
        parser = etree.XMLPullParser(
            events=("start", "end"),
            tag=(tag, *_TAGS),
            encoding=encoding(head),
            # These three options have no effect at present: `root_tag` rejects a DOCTYPE before the parser is called.
            resolve_entities=False,  # pragma: no mutate
            no_network=True,  # pragma: no mutate
            load_dtd=False,  # pragma: no mutate
            remove_comments=True,
            remove_pis=True,
        )
        ended = False
        try:
            self.feed(parser, head.removeprefix(BOM), stream)
            ended = True
            parser.close()
            self.events(parser)
        except etree.XMLSyntaxError as error:
            where = Where(self.file, error.lineno)
            if "XML_PARSE_HUGE" in error.msg:  # libxml2's limits, which are never raised here
                raise LimitExceeded("has elements nested more than 256 deep, or texts beyond 10 MB", where) from None
            raise ReadError(_syntax(error, ended=ended), where) from None
        except ValueError as error:
            raise ReadError(f"cannot be read as XML: {error}") from None
        if self.root is None:
            raise ReadError("is not an OpenVINO IR: <net> has an XML namespace, which no IR has")
        if not self.has_rt_info:
            self.net.rt_info = self.old
        for child in self.root:
            self.pass_over(child)
        if self.net.is_legacy:
            from irload.read.legacy import modernize

            modernize(self.net, self.file, self.elements.report)
        return self.net

    def feed(self, parser: Any, head: bytes, stream: BinaryIO) -> None:
        """Parse chunk by chunk. Memory between freed elements is bounded at every level of bodies."""
        at = 0
        while chunk := head[at : at + CHUNK] or stream.read(CHUNK):
            at += CHUNK
            self.lowest = len(self.held)
            parser.feed(chunk)
            self.events(parser)
            for level in range(min(self.lowest, len(self.held)) - 1, len(self.held)):
                self.held[level] += len(chunk)
                self.limits.require("element_bytes", self.held[level], "one element is too long")
            self.deadline.check()

    # -- events --------------------------------------------------------------------------------------------------------

    def events(self, parser: Any) -> None:
        """Handle the events of the parser."""
        for event, element in parser.read_events():
            if event == "start":
                self.start(element)
            else:
                self.end(element)

    def start(self, element: Element) -> None:
        tag = element.tag
        if self.root is None:
            self.root = element
            self.tops.append(element)
            self.open_net(element)
        elif tag == "rt_info" or tag in OLD:
            self.metadata_depth += 1
        elif self.metadata_depth:
            return
        elif tag in BODIES and self.bodies:
            self.graphs.append(RawGraph())
            self.held.append(0)
            self.tops.append(element)
            if len(self.graphs) > self.limits.body_depth:
                raise self.limits.exceeded(
                    "body_depth", f"bodies are nested {len(self.graphs)} deep", self.elements.where(element)
                )
        elif tag == "layer" and element.getparent().tag == "layers":
            self.bodies.append({})

    def end(self, element: Element) -> None:
        """Read a complete element, and free it."""
        tag = element.tag
        if tag == "rt_info" or tag in OLD:
            self.metadata_depth -= 1
            if element.getparent() is self.root:
                self.metadata(tag, element)
        elif self.metadata_depth:
            return
        elif tag == "layer" and element.getparent().tag == "layers":
            self.layer(element, self.bodies.pop())
        elif tag == "edge" and element.getparent().tag == "edges":
            self.edge(element)
        elif tag in BODIES and self.bodies:
            self.bodies[-1][tag] = self.graphs.pop()
            self.held.pop()
            self.tops.pop()
            self.lowest = min(self.lowest, len(self.held))
            element.clear()  # its siblings are the ports and port maps of the layer, still unread
        elif tag == "pre-process" and element.getparent() is self.root:
            self.net.preprocess = preprocess(element, self.elements)

    def layer(self, element: Element, bodies: dict[str, RawGraph]) -> None:
        self.layers += 1
        if self.layers > self.limits.layers:
            raise self.limits.exceeded("layers", f"has {self.layers} layers or more")
        layer = self.elements.layer(element, bodies)
        if layer is not None:
            self.graphs[-1].layers.append(layer)
        self.free(element)

    def edge(self, element: Element) -> None:
        self.edges += 1
        if self.edges > self.limits.ports:
            raise self.limits.exceeded("ports", f"has {self.edges} edges or more, each of which needs a port")
        edge = self.elements.edge(element)
        if edge is not None:
            self.graphs[-1].edges.append(edge)
        self.free(element)

    def free(self, element: Element) -> None:
        """Free a processed element and everything before it in its graph, so that memory stays constant."""
        element.clear()
        self.held[-1] = 0
        parent = element.getparent()
        while element.getprevious() is not None:
            del parent[0]
        if parent is not self.swept:  # once per parent: no element is added before an open one later
            self.swept = parent
            self.sweep(parent)

    def sweep(self, element: Element) -> None:
        """Free everything before an element and before its ancestors, up to the one that contains the graph."""
        while element is not self.tops[-1]:
            parent = element.getparent()
            while element.getprevious() is not None:
                if parent is self.root:
                    self.pass_over(parent[0])
                del parent[0]
            element = parent

    def pass_over(self, child: Element) -> None:
        """Warn about an unknown element of the net."""
        if child.tag not in _PARTS:
            self.elements.warn(f"line {child.sourceline}: unknown element <{child.tag}> in <net>")

    def open_net(self, root: Element) -> None:
        where = Where(self.file, root.sourceline)
        text = root.get("version", "").lstrip()
        version = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
        if version is None:
            raise ReadError(f"has version '{text[:40]}' on <net>; an IR states 2 to 7, 10 or 11", where)
        if version > VERSIONS[-1]:
            raise ReadError(f"is IR version {version}, newer than 11, the newest that irload supports", where)
        if version not in VERSIONS:
            raise ReadError(f"is IR version {version}, which does not exist; an IR states 2 to 7, 10 or 11", where)
        self.net.name, self.net.version = root.get("name", ""), version

    def metadata(self, tag: str, element: Element) -> None:
        if tag == "rt_info":
            self.has_rt_info = True
            self.net.rt_info = tree(element)
        else:
            check_old(element, self.elements)
            self.old[tag] = tree(element)
        element.clear()
