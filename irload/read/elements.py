"""Converts XML elements to raw layers, ports and edges. Faults are reported, and reading continues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irload.errors import ReadError, Where
from irload.read.faults import WARNINGS, OnFault
from irload.read.names import split_names
from irload.read.raw import RawEdge, RawGraph, RawLayer, RawNet, RawPort
from irload.safety.limits import Limits

Element = Any  # lxml ships no types

BODIES = ("body", "then_body", "else_body")
MAPS = ("port_map", "then_port_map", "else_port_map", "back_edges")
TAG, CHILDREN = "#tag", "#children"
"""Keys of an rt_info entry that is not a plain `<attribute/>`: its tag, and its nested entries."""
_PROFILED = ("execOrder", "execTimeMcs", "originalLayersNames")
"""Attributes that occur only in the dump of a compiled model."""
_KNOWN = {
    "layer": frozenset({"id", "name", "type", "version", "output_names"}),
    "port": frozenset({"id", "precision", "names"}),
    "edge": frozenset({"from-layer", "from-port", "to-layer", "to-port"}),
}
_ONCE = frozenset(
    {
        *("decompression", "dequantization_node", "disable_fp16_compression", "fused_names", "keep_const_precision"),
        *("layout", "nms_selected_indices", "nonconvertible_divide", "old_api_map_element_type", "old_api_map_order"),
        *("precise", "preprocessed", "preprocessing_attribute", "primitives_priority", "strides"),
    }
)
"""Runtime attributes that OpenVINO rejects if a layer has them twice."""


class Elements:
    """Reads the elements of one file. Warnings go to `net`, faults to `report`."""

    def __init__(self, file: str | None, net: RawNet, report: OnFault, limits: Limits) -> None:
        self.limits = limits
        self.port_count = 0
        self.file = file
        self.net = net
        self.report = report
        self.numbers: dict[str, int] = {}

    def layer(self, element: Element, bodies: dict[str, RawGraph]) -> RawLayer | None:
        """Read a layer with its ports and attributes; None if its id is invalid."""
        identity = self.natural(element, "id")
        name, type = self.required(element, "name"), self.required(element, "type")
        self.require_length(element, (name, type))
        if identity is None:
            return None
        if not self.net.is_legacy:
            self.warn_of_unknown(element)
        layer = RawLayer(identity, name, type, element.get("version", ""), element.sourceline, bodies=bodies)
        layer.precision = element.get("precision")
        names = element.get("output_names")
        layer.output_names = None if names is None else self.names(element, names)
        for child in element:
            tag = child.tag
            if tag == "data":
                layer.data.update(self.attributes(child))
            elif tag == "input":
                self.ports(child, layer.inputs, is_output=False)
            elif tag == "output":
                self.ports(child, layer.outputs, is_output=True)
            elif tag == "rt_info":
                self.runtime_attributes(layer, child)
            elif tag in MAPS:
                layer.maps[tag] = [{**self.attributes(e), "tag": e.tag, "line": str(e.sourceline)} for e in child]
            elif self.net.is_legacy and self.legacy(layer, child):
                continue
            elif tag not in BODIES:
                self.warn(f"line {child.sourceline}: unknown element <{tag}> in layer '{layer.name}'")
        if not layer.version and any(key in layer.data for key in _PROFILED):
            raise ReadError(
                "is the execution graph of a compiled model, which shows its kernels and cannot be run. "
                "Use the model that was compiled",
                self.where(element),
            )
        return layer

    def legacy(self, layer: RawLayer, child: Element) -> bool:
        """Read an element that only layers of IR v2 to v7 have: `blobs`, `weights`, `biases`, `convolution_data`.

        False for any other element.
        """
        if child.tag == "blobs":
            for blob in child:
                self.blob(layer, blob)
        elif child.tag in ("weights", "biases"):
            self.blob(layer, child)
        elif child.tag.endswith(("_data", "-data")):
            layer.data.update(self.attributes(child))
        else:
            return False
        return True

    def blob(self, layer: RawLayer, element: Element) -> None:
        """Read the offset and the size of weights in the .bin file."""
        offset, size = self.natural(element, "offset"), self.natural(element, "size")
        if offset is not None and size is not None:
            layer.blobs[element.tag] = offset, size

    def ports(self, element: Element, ports: list[RawPort], *, is_output: bool) -> None:
        """Append the ports of an `input` or `output` element."""
        self.port_count += len(element)
        if self.port_count > self.limits.ports:
            raise self.limits.exceeded("ports", f"has {self.port_count} ports or more", self.where(element))
        for child in element:
            if child.tag != "port":
                self.warn(f"line {child.sourceline}: unknown element <{child.tag}> among ports")
                continue
            self.warn_of_unknown(child)
            identity = self.natural(child, "id")
            precision = child.get("precision")
            if precision is None and is_output and not self.net.is_legacy:
                self.report(ReadError("an output port has no precision", self.where(child)))
            dims = tuple([self.dim(d) for d in child if d.tag == "dim"])
            info = child.find("rt_info") if len(child) > len(dims) and not self.net.is_v10 else None
            names = child.get("names")
            ports.append(
                RawPort(
                    len(ports) if identity is None else identity,
                    precision,
                    dims or None,
                    self.names(child, names) if names else (),
                    child.sourceline,
                    [] if info is None else [self.entry(e) for e in info],
                )
            )

    def dim(self, element: Element) -> int:
        """Read a dimension of a port. An invalid dimension is reported and read as one that declares nothing."""
        text = (element.text or "").strip()
        size = self.number(text)
        if size is not None:
            return size
        if text != "-1":
            fault = f"dimension '{text[:40]}' of a port must be an integer of at least -1"
            self.report(ReadError(fault, self.where(element)))
        return -1

    def runtime_attributes(self, layer: RawLayer, element: Element) -> None:
        """Read the rt_info of a layer. OpenVINO ignores that of IR v10."""
        if self.net.is_v10:
            return
        seen: set[tuple[str, str]] = set()
        for child in element:
            entry = self.entry(child)
            name, version = entry.get("name", ""), entry.get("version", "")
            if child.tag == "attribute" and (name, version) in seen and version and name in _ONCE:
                self.report(ReadError(f"rt_info has the attribute {name} twice", self.where(child, layer)))
            seen.add((name, version))
            layer.rt_info.append(entry)

    def entry(self, element: Element) -> dict[str, Any]:
        """Read one entry of rt_info: its attributes, and the parts needed to write it again."""
        entry: dict[str, Any] = self.attributes(element)
        if element.tag != "attribute":
            entry[TAG] = element.tag
        if len(element):
            entry[CHILDREN] = [self.entry(child) for child in element]
        return entry

    def edge(self, element: Element) -> RawEdge | None:
        """Read an edge; None if one of its ends is invalid."""
        ends = [self.natural(element, key) for key in ("from-layer", "from-port", "to-layer", "to-port")]
        known = [end for end in ends if end is not None]
        self.warn_of_unknown(element)
        return RawEdge(*known, line=element.sourceline) if len(known) == 4 else None

    def warn(self, text: str) -> None:
        """Record a warning, up to WARNINGS of them; a file may cause millions."""
        if len(self.net.warnings) < WARNINGS:
            self.net.warnings.append(text)

    # -- attributes ----------------------------------------------------------------------------------------------------

    def attributes(self, element: Element) -> dict[str, str]:
        """Return all attributes of an element. Raises LimitExceeded for too many: listing them takes quadratic time."""
        count = len(element.attrib)
        if count > self.limits.attributes:
            raise self.limits.exceeded("attributes", f"<{element.tag}> has {count} attributes", self.where(element))
        return dict(element.attrib)

    def warn_of_unknown(self, element: Element) -> None:
        """Warn about attributes outside the format, which OpenVINO ignores."""
        count = len(element.attrib)
        if count > self.limits.attributes:  # listing them takes quadratic time
            self.warn(f"line {element.sourceline}: {count} attributes of <{element.tag}>")
            return
        for name in sorted(set(element.attrib) - _KNOWN[element.tag]):
            self.warn(f"line {element.sourceline}: unknown attribute {name} of <{element.tag}>")

    def require_length(self, element: Element, names: Iterable[str]) -> None:
        """Raise LimitExceeded for a name that is too long."""
        for name in names:
            if len(name) > self.limits.name_length:
                fact = f"a name has {len(name)} characters"
                raise self.limits.exceeded("name_length", fact, Where(self.file, element.sourceline))

    def names(self, element: Element, text: str) -> tuple[str, ...]:
        """Split a list of names."""
        names = split_names(text)
        if len(text) > self.limits.name_length:
            self.require_length(element, names)
        return names

    def required(self, element: Element, key: str) -> str:
        """Return the text of an attribute; a missing attribute is reported and read as empty."""
        value = element.get(key)
        if value is None:
            self.report(ReadError(f"<{element.tag}> has no attribute {key}", self.where(element)))
            return ""
        return value

    def natural(self, element: Element, key: str) -> int | None:
        """Return a non-negative integer with fewer than 19 digits; anything else is reported."""
        value = element.get(key)
        number = None if value is None else self.number(value.lstrip().removeprefix("+"))  # as OpenVINO reads it
        if number is not None:
            return number
        fault = (
            f"<{element.tag}> has no attribute {key}"
            if value is None
            else f"{key}='{value[:40]}' of <{element.tag}> is not a non-negative integer"
        )
        self.report(ReadError(fault, self.where(element)))
        return None

    def number(self, text: str) -> int | None:
        """Parse a number with fewer than 19 digits; None for other text. Cached, because the same few numbers recur."""
        number = self.numbers.get(text)
        if number is None and text.isascii() and text.isdigit() and len(text) < 19:
            number = self.numbers[text] = int(text)
        return number

    def where(self, element: Element, layer: RawLayer | None = None) -> Where:
        """Return the location of an element; without a layer, that of the enclosing layer, if any."""
        if layer is not None:
            return Where(self.file, element.sourceline, layer.id, layer.name, layer.type)
        owner = element
        while owner is not None and owner.tag != "layer":
            owner = owner.getparent()
        if owner is None:
            return Where(self.file, element.sourceline)
        id = owner.get("id", "")
        return Where(
            self.file, element.sourceline, int(id) if id.isdecimal() else id, owner.get("name"), owner.get("type")
        )
