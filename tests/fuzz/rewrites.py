"""Harmless rewrites: equivalent files. Results must be bit-identical."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from lxml import etree

from tests.fuzz.mutant import BODIES, Element, Mutant, edges, layer_of, layers

MAPS = ("port_map", "then_port_map", "else_port_map")
FIXED = ("Parameter", "Result", "Assign")
"""The order of these layers is the order of inputs and outputs."""


def _graphs(m: Mutant) -> list[Element]:
    return [g for g in (m.root, *m.all(*BODIES)) if g.find("layers") is not None]


def _shuffled(m: Mutant, items: list[Any]) -> list[Any]:
    return [items[k] for k in m.rng.permutation(len(items))]


def reorder_layers(m: Mutant) -> bool:
    """Permute the layers; inputs and outputs keep their order."""
    for graph in _graphs(m):
        place, candidates = graph.find("layers"), layers(graph)
        fixed = {kind: iter([x for x in candidates if x.get("type") == kind]) for kind in FIXED}
        mixed = _shuffled(m, candidates)
        place[:] = [next(fixed[x.get("type")]) if x.get("type") in fixed else x for x in mixed]
    return m.note("layers reordered")


def reorder_edges(m: Mutant) -> bool:
    """Permute edges and the entries of port maps."""
    for place in m.all("edges", "back_edges", *MAPS):
        place[:] = _shuffled(m, list(place))
    return m.note("edges reordered")


def renumber_layers(m: Mutant) -> bool:
    """Give layers other ids."""
    for graph in _graphs(m):
        candidates = layers(graph)
        numbers = m.rng.choice(10 * len(candidates) + 10, len(candidates), replace=False)
        new = {x.get("id"): str(n) for x, n in zip(candidates, numbers, strict=True)}
        for layer in candidates:
            layer.set("id", new[layer.get("id")])
        for edge in edges(graph):
            for key in ("from-layer", "to-layer"):
                edge.set(key, new[edge.get(key)])
        for line in _lines_about(graph):
            for key in ("internal_layer_id", "from-layer", "to-layer"):
                if key in line.attrib:
                    line.set(key, new[line.get(key)])
    return m.note("layers renumbered")


def _lines_about(body: Element) -> list[Element]:
    """The entries of port maps and back edges that name layers of a body."""
    if body.tag not in BODIES:
        return []
    owner = layer_of(body)
    tags = (body.tag.replace("body", "port_map"), "back_edges")
    return [line for part in owner if part.tag in tags for line in part.iterchildren("*")]


def renumber_ports(m: Mutant) -> bool:
    """Give ports other ids in the same order: outputs of loops are sorted by id."""
    for graph in _graphs(m):
        new: dict[tuple[str, str], str] = {}
        for layer in layers(graph):
            ports = layer.findall("input/port") + layer.findall("output/port")
            numbers = sorted(m.rng.choice(3 * len(ports) + 3, len(ports), replace=False))
            own = {p.get("id"): str(n) for p, n in zip(ports, numbers, strict=True)}
            new |= {(layer.get("id"), old): n for old, n in own.items()}
            for part in (part for part in layer if part.tag in MAPS):
                for line in part.iterchildren("*"):
                    line.set("external_port_id", own.get(line.get("external_port_id"), line.get("external_port_id")))
            for port in ports:
                port.set("id", own[port.get("id")])
        for edge in edges(graph):
            for end in ("from", "to"):
                edge.set(f"{end}-port", new[edge.get(f"{end}-layer"), edge.get(f"{end}-port")])
    return m.note("ports renumbered")


def rename(m: Mutant) -> bool:
    """Give layers other names."""
    for k, layer in enumerate(m.all("layer")):
        layer.set("name", f"{m.of(('n', 'ä/', 'a b', 'Ω<&>'))}{k}")
    return m.note("layers renamed")


def reorder_attributes(m: Mutant) -> bool:
    """Permute attributes."""
    for element in m.root.iter("*"):
        items = _shuffled(m, list(element.attrib.items()))
        element.attrib.clear()
        element.attrib.update(items)
    return m.note("attributes reordered")


def reorder_parts(m: Mutant) -> bool:
    """Permute the parts of a layer and of the net."""
    for place in (m.root, *m.all("layer")):
        place[:] = _shuffled(m, list(place))
    return m.note("parts reordered")


def space(m: Mutant) -> bool:
    """Add white space around elements, dims, and the items of lists."""
    between, around = m.of(("", "\n", "\t\t", " \n \n")), m.of(("", " ", "\n\t"))
    for element in m.root.iter("*"):
        element.tail = between
        if element.tag == "dim":
            element.text = f"{around}{(element.text or '').strip()}{around}"
        elif len(element):
            element.text = between
    return m.note("whitespace")


def comment(m: Mutant) -> bool:
    """Add comments and processing instructions between elements, and in a dim."""
    for element in [x for x in m.root.iter("*") if m.chance(0.2)]:
        if len(element):
            new = etree.Comment(" <layer id='1'/> ") if m.chance(0.7) else etree.PI("note", "x='1'")
            element.insert(m.between(0, len(element)), new)
    return m.note("comments")


def metadata(m: Mutant) -> bool:
    """Add runtime information that does not affect the results."""
    if m.root.find("rt_info") is None:
        info = etree.SubElement(m.root, "rt_info")
        etree.SubElement(info, "MO_version", value="x" * m.between(0, 5))
        etree.SubElement(etree.SubElement(info, "conversion_parameters"), "framework", value="none")
    return m.note("metadata")


def move_constants(m: Mutant) -> bool:
    """Permute the constants in the .bin file, some with a gap before them."""
    constants = [d for d in m.all("data") if "offset" in d.attrib and "size" in d.attrib]
    ranges = sorted({(int(d.get("offset")), int(d.get("size"))) for d in constants})
    if any(a + n > b for (a, n), (b, _) in pairwise(ranges)):
        return False
    old, new, moved = bytes(m.blob or b""), bytearray(), {}
    for offset, size in _shuffled(m, ranges):
        new += bytes(m.of((0, 0, 1, 3, 64)))
        moved[offset, size] = len(new)
        new += old[offset : offset + size]
    for data in constants:
        data.set("offset", str(moved[int(data.get("offset")), int(data.get("size"))]))
    m.blob = new
    return m.note("constants moved")


TREE = (
    *(reorder_layers, reorder_edges, renumber_layers, renumber_ports, rename, reorder_attributes, reorder_parts),
    *(space, comment, metadata, move_constants),
)


def as_written(m: Mutant, text: bytes) -> bytes:
    """Encode the same document in other bytes."""
    roll = m.between(0, 6)
    if roll == 0:
        return b"\xef\xbb\xbf" + text
    if roll == 1:
        return text.replace(b"\n", b"\r\n")
    if roll == 2:
        return text.partition(b"?>")[2].lstrip()
    if roll == 3:
        return re.sub(rb'="([0-9]+)"', lambda f: b'="' + b"".join(b"&#%d;" % c for c in f[1]) + b'"', text)
    if roll == 4:
        return re.sub(rb'="([\w,.]*)"', rb"='\1'", text)
    if roll == 5:
        return re.sub(rb"<(\w+)( [^<>]*)?/>", rb"<\1\2></\1>", text)
    return re.sub(rb"<dim>(\d+)</dim>", rb"<dim><![CDATA[\1]]></dim>", text)
