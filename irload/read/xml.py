"""The XML of an IR, streamed through lxml into raw layers. Rejects what no real file holds and what could hurt."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from irload.errors import IRError, LimitExceeded, ReadError, Where
from irload.read.elements import BODIES, Element, Elements, Report
from irload.read.files import HEAD, open_regular
from irload.read.metadata import OLD, check_old, preprocess, tree
from irload.read.pause import uncollected
from irload.read.prolog import BOM, root_tag
from irload.read.raw import RawGraph, RawNet
from irload.safety import limits

__all__ = ["Report", "raise_first", "read_xml"]

CHUNK = 1 << 16
_PARTS = ("layers", "edges", "rt_info", *OLD, "pre-process", "statistics")
_TAGS = ("layer", "edge", *BODIES, "rt_info", *OLD, "pre-process")


def raise_first(error: IRError) -> None:
    """The strict report: the first fault ends the reading."""
    raise error


def read_xml(source: str | Path | bytes, report: Report = raise_first) -> RawNet:
    """The raw net of a path or of the bytes of an XML file. Faults go to `report`, which may raise or collect.

    Raises ReadError where nothing can be read at all: no XML, no `net`, a version that is no longer IR; LimitExceeded
    where the file asks for more than `irload.limits` grants.
    """
    name = None if isinstance(source, bytes) else str(source)
    try:
        with _open(source) as stream, uncollected():
            return _Reader(name, report).read(stream)
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}", Where(name)) from None
    except IRError as error:
        raise error.at(Where(name)) from None


def _open(source: str | Path | bytes) -> BinaryIO:
    if isinstance(source, bytes):
        stream, size = io.BytesIO(source), len(source)
    else:
        descriptor, size = open_regular(source, "the model")
        stream = os.fdopen(descriptor, "rb")
    if size > limits.xml_bytes:
        stream.close()
        raise LimitExceeded(f"the XML has {size} bytes; the limit is {limits.xml_bytes} (irload.limits.xml_bytes)")
    return stream


class _Reader:
    """Walks the events of one file. A stack of graphs mirrors the nesting of bodies."""

    def __init__(self, file: str | None, report: Report) -> None:
        self.file = file
        self.net = RawNet()
        self.elements = Elements(file, self.net, report)
        self.graphs: list[RawGraph] = [self.net.graph]
        self.bodies: list[dict[str, RawGraph]] = []
        self.root: Element = None
        self.old: dict[str, Any] = {}
        self.has_rt_info = False
        self.metadata_depth = 0
        self.layers = 0

    def read(self, stream: BinaryIO) -> RawNet:
        head = stream.read(HEAD)
        tag = root_tag(head)
        if tag.lower() != "net":
            raise ReadError(f"is no OpenVINO IR: its root element is <{tag}>, expected <net>")
        parser = etree.XMLPullParser(
            events=("start", "end"),
            tag=(tag, *_TAGS),
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            remove_comments=True,
            remove_pis=True,
        )
        try:
            self.feed(parser, head.removeprefix(BOM), stream)
            parser.close()
            self.events(parser)
        except etree.XMLSyntaxError as error:
            where = Where(self.file, error.lineno)
            if "XML_PARSE_HUGE" in error.msg:  # libxml2's own bounds, which are never lifted here
                raise LimitExceeded("has elements nested more than 256 deep, or texts beyond 10 MB", where) from None
            raise ReadError(f"is not well-formed XML: {error.msg}", where) from None
        except (ValueError, UnicodeError) as error:
            raise ReadError(f"cannot be read as XML: {error}") from None
        if self.root is None:
            raise ReadError("is no OpenVINO IR: <net> has an XML namespace, which no IR has")
        if not self.has_rt_info:
            self.net.rt_info = self.old
        self.net.warnings += [
            f"line {child.sourceline}: unknown element <{child.tag}> in <net>"
            for child in self.root
            if child.tag not in _PARTS
        ]
        return self.net

    def feed(self, parser: Any, head: bytes, stream: BinaryIO) -> None:
        """Parse chunk by chunk. What lies between two elements that are read and freed is bounded."""
        held = 0
        at = 0
        while chunk := head[at : at + CHUNK] or stream.read(CHUNK):
            at += CHUNK
            parser.feed(chunk)
            held = 0 if self.events(parser) else held + len(chunk)
            if held > limits.element_bytes:
                raise LimitExceeded(
                    f"one element takes more than {limits.element_bytes} bytes (irload.limits.element_bytes)"
                )

    # -- events --------------------------------------------------------------------------------------------------------

    def events(self, parser: Any) -> bool:
        """Handle what the parser has found. True when anything was freed."""
        freed = False
        for event, element in parser.read_events():
            if event == "start":
                self.start(element)
            else:
                freed = self.end(element) or freed
        return freed

    def start(self, element: Element) -> None:
        tag = element.tag
        if self.root is None:
            self.root = element
            self.open_net(element)
        elif tag == "rt_info" or tag in OLD:
            self.metadata_depth += 1
        elif self.metadata_depth:
            return
        elif tag in BODIES and self.bodies:
            self.graphs.append(RawGraph())
            if len(self.graphs) > limits.nesting:
                raise LimitExceeded(
                    f"bodies are nested more than {limits.nesting} deep (irload.limits.nesting)",
                    self.elements.where(element),
                )
        elif tag == "layer" and element.getparent().tag == "layers":
            self.bodies.append({})

    def end(self, element: Element) -> bool:
        """Read what is complete. True when it was freed."""
        tag = element.tag
        if tag == "rt_info" or tag in OLD:
            self.metadata_depth -= 1
            return element.getparent() is self.root and self.metadata(tag, element)
        if self.metadata_depth:
            return False
        if tag == "layer" and element.getparent().tag == "layers":
            self.layer(element, self.bodies.pop())
        elif tag == "edge" and element.getparent().tag == "edges":
            edge = self.elements.edge(element)
            if edge is not None:
                self.graphs[-1].edges.append(edge)
            _forget(element)
        elif tag in BODIES and self.bodies:
            self.bodies[-1][tag] = self.graphs.pop()
            element.clear(keep_tail=False)  # its siblings are the ports and port maps of the layer, still to be read
        elif tag == "pre-process" and element.getparent() is self.root:
            self.net.preprocess = preprocess(element, self.elements)
        else:
            return False
        return True

    def layer(self, element: Element, bodies: dict[str, RawGraph]) -> None:
        self.layers += 1
        if self.layers > limits.layers:
            raise LimitExceeded(f"has more than {limits.layers} layers (irload.limits.layers)")
        layer = self.elements.layer(element, bodies)
        if layer is not None:
            self.graphs[-1].layers.append(layer)
        _forget(element)

    def open_net(self, root: Element) -> None:
        where = Where(self.file, root.sourceline)
        text = root.get("version", "").strip()
        version = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
        if version is None:
            raise ReadError(f"has version '{text[:40]}' on <net>; an IR states 10 or 11", where)
        if version < 10:
            raise ReadError(
                f"is IR version {version}, which OpenVINO wrote until 2020 and itself no longer reads; versions 10 and "
                "11 can be read. Convert the model anew from its original framework (openvino.convert_model)",
                where,
            )
        if version > 11:
            raise ReadError(f"is IR version {version}, newer than the versions 10 and 11 that are known", where)
        self.net.name, self.net.version = root.get("name", ""), version

    def metadata(self, tag: str, element: Element) -> bool:
        if tag == "rt_info":
            self.has_rt_info = True
            self.net.rt_info = tree(element)
        else:
            check_old(element, self.elements)
            self.old[tag] = tree(element)
        element.clear(keep_tail=False)
        return True


def _forget(element: Element) -> None:
    """Free what has been read, so that memory stays flat on files of any length."""
    element.clear(keep_tail=False)
    parent = element.getparent()
    while element.getprevious() is not None:
        del parent[0]
