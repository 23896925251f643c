"""One structural edit at a time: `python -m tests.planted_edits DIR… [--count N] [--seed S]`.

Edits one layer in a copy of a model's files (an attribute, a constant, the type, the version, an input; or adds or
removes one; in bodies, too). `irload.diff` has to report exactly this edit.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import irload
from irload.comparison.edits import Difference, LayerEdit
from irload.errors import IRError
from irload.graph import Node
from irload.ops.registry import resolve

UNARY = ("ReLU", "Sigmoid", "Tanh", "Abs", "Exp", "Negative", "Floor", "Sqrt")
BINARY = ("Add", "Multiply", "Subtract", "Maximum", "Minimum")
ENDS = ("Parameter", "Result", "Const", "Assign")


@dataclass(frozen=True)
class Edit:
    """An edit and its layer. `what` is the change that `diff` must report; "" for added and removed layers."""

    kind: str
    name: str
    what: str = ""
    key: str = ""

    def is_found(self, difference: Difference) -> bool:
        """Whether this edit is the only reported one."""
        return len(difference.edits) == 1 and self.fits(difference.edits[0])

    def fits(self, edit: LayerEdit) -> bool:
        changes = [(c.what, c.key) for c in edit.changes]
        fits = edit.kind == self.kind and f"/{edit.name.partition('#')[0]}".endswith(f"/{self.name}")
        # Another type or version may have other attributes.
        return fits and (not self.what or (changes[0] == (self.what, self.key) and (len(changes) == 1 or not self.key)))


class Copy:
    """A model whose files are edited."""

    def __init__(self, xml: Path, folder: Path) -> None:
        self.xml, self.file = xml, folder / "model.xml"
        self.blob = xml.with_suffix(".bin").read_bytes() if xml.with_suffix(".bin").exists() else b""
        self.tree = etree.parse(xml)
        self.model = irload.read_model(xml)
        self.nodes = {(n.line, n.id): n for g in self.model.walk() for n in g.nodes if n.reachable}

    def reset(self) -> None:
        self.tree = etree.parse(self.xml)
        self.appended = b""

    def layers(self) -> list[tuple[Any, Node]]:
        """The elements of the layers that are used, with their nodes."""
        pairs = ((e, self.nodes.get((e.sourceline, int(e.get("id"))))) for e in self.tree.iter("layer"))
        return [(e, n) for e, n in pairs if n is not None]

    def write(self) -> None:
        """Write the edited files."""
        self.tree.write(self.file, encoding="utf-8", xml_declaration=True)
        self.file.with_suffix(".bin").write_bytes(self.blob + self.appended)

    def diff(self) -> Difference:
        self.write()
        return irload.diff(self.xml, self.file)


Make = Callable[[Copy, np.random.Generator], Edit | None]


def pick(rng: np.random.Generator, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))] if len(items) else None


def attribute(model: Copy, rng: np.random.Generator) -> Edit | None:
    choice = pick(rng, [(e, n) for e, n in model.layers() if n.type not in ENDS and e.find("data") is not None])
    if choice is None:
        return None
    element, node = choice
    data = element.find("data")
    declared = {a.xml_name: a for a in node.op.declared.values() if not a.supplied}
    key = pick(rng, [k for k in data.attrib if k in declared])
    if key is None:
        return None
    declaration = declared[key]
    old = node.op.attributes[declaration.name]
    data.set(key, _other(data.get(key), declaration, rng))
    try:
        new = type(node.op).parse(dict(data.attrib), **{k: node.op.attributes[k] for k in node.op.supplied})[0]
    except IRError:
        return None
    changed = new.attributes[declaration.name] != old
    return Edit("changed", node.name, "attribute", key) if changed else None


def _other(text: str, declaration: Any, rng: np.random.Generator) -> str:
    if declaration.words:
        return str(pick(rng, [w for w in declaration.words if w != text.lower()]) or text)
    if text.lower() in ("true", "false"):
        return "false" if text.lower() == "true" else "true"
    if declaration.kind == "element type":
        return "f16" if text != "f16" else "i32"
    items = text.split(",")
    at = int(rng.integers(len(items)))
    try:
        items[at] = str(int(items[at]) + 1)
    except ValueError:
        try:
            items[at] = str(float(items[at]) * 1.5 + 0.25)
        except ValueError:
            items[at] += "_"
    return ",".join(items)


def constant(model: Copy, rng: np.random.Generator) -> Edit | None:
    choice = pick(rng, [(e, n) for e, n in model.layers() if n.type == "Const" and n.op.attributes["size"] > 1])
    if choice is None or choice[1].op.attributes["element_type"].name == "string":
        return None
    element, node = choice
    start, size = node.op.attributes["offset"], node.op.attributes["size"]
    count = node.op.attributes["shape"].size.lo
    raw = bytearray(model.blob[start : start + size])
    if not count:
        return None
    raw[int(rng.integers(min(size, node.op.attributes["element_type"].bytes_for(count))))] ^= 1
    data = element.find("data")  # constants may share bytes, so the changed one gets a copy
    model.appended = bytes(-len(model.blob) % 64) + bytes(raw)
    data.set("offset", str(len(model.blob) + -len(model.blob) % 64))
    return Edit("changed", node.name, "values")


def kind(model: Copy, rng: np.random.Generator) -> Edit | None:
    choice = pick(rng, [(e, n) for e, n in model.layers() if n.type in (*UNARY, *BINARY)])
    if choice is None:
        return None
    element, node = choice
    element.set("type", pick(rng, [t for t in (UNARY if node.type in UNARY else BINARY) if t != node.type]))
    return Edit("changed", node.name, "type")


def version(model: Copy, rng: np.random.Generator) -> Edit | None:
    choice = pick(rng, [(e, n) for e, n in model.layers() if n.type not in ENDS])
    if choice is None:
        return None
    element, node = choice
    others: list[str] = []
    for k in range(1, 17):
        try:
            cls, _ = resolve(node.type, f"opset{k}")
            cls.parse(node.text, **{name: node.op.attributes[name] for name in node.op.supplied})
        except IRError:
            continue
        if cls is not type(node.op):
            others.append(f"opset{k}")
    chosen = pick(rng, others)
    if chosen is None:
        return None
    element.set("version", chosen)
    return Edit("changed", node.name, "version")


def rewire(model: Copy, rng: np.random.Generator) -> Edit | None:
    choice = pick(rng, [(e, n) for e, n in model.layers() if n.inputs])
    if choice is None:
        return None
    element, node = choice
    graph = next(g for g in model.model.walk() if node in g.nodes)
    before = [o for n in graph.nodes[: graph.nodes.index(node)] for o in n.outputs]
    before = [o for o in before if o.node.reachable and o.node.type != "Const" and o.node.id >= 0]
    port = int(rng.integers(len(node.inputs)))
    source = pick(rng, [o for o in before if o is not node.inputs[port]])
    edge = _edge_into(element, port)
    if source is None or edge is None:
        return None
    edge.set("from-layer", str(source.node.id))
    edge.set("from-port", _port_ids(_sibling(element, source.node.id), "output")[source.index])
    return Edit("changed", node.name, "input", str(port))


def add(model: Copy, rng: np.random.Generator) -> Edit | None:
    choice = pick(rng, [(e, n) for e, n in model.layers() if n.inputs])
    if choice is None:
        return None
    element, node = choice
    edge = _edge_into(element, int(rng.integers(len(node.inputs))))
    if edge is None:
        return None
    layers = element.getparent()
    id = str(1 + max(int(e.get("id")) for e in layers))
    new = etree.SubElement(layers, "layer", id=id, name="planted", type=str(pick(rng, UNARY)), version="opset1")
    for tag, port in (("input", "0"), ("output", "1")):
        etree.SubElement(etree.SubElement(new, tag), "port", id=port, precision="FP32")
    inward = etree.SubElement(edge.getparent(), "edge", dict(edge.attrib))
    inward.set("to-layer", id)
    inward.set("to-port", "0")
    edge.set("from-layer", id)
    edge.set("from-port", "1")
    return Edit("added", "planted")


def remove(model: Copy, rng: np.random.Generator) -> Edit | None:
    able = [
        (e, n) for e, n in model.layers() if n.type not in (*ENDS, "ReadValue") and n.inputs and len(n.outputs) == 1
    ]
    choice = pick(rng, able)
    if choice is None:
        return None
    element, node = choice
    inward = _edge_into(element, 0)
    edges = inward.getparent()
    for edge in list(edges):
        if edge.get("from-layer") == element.get("id"):
            edge.set("from-layer", inward.get("from-layer"))
            edge.set("from-port", inward.get("from-port"))
    for edge in list(edges):
        if edge.get("to-layer") == element.get("id"):
            edges.remove(edge)
    element.getparent().remove(element)
    return Edit("removed", node.name)


def _port_ids(element: Any, side: str) -> list[str]:
    return [p.get("id") for p in element.iterfind(f"{side}/port")]


def _edge_into(element: Any, port: int) -> Any:
    edges = element.getparent().getparent().find("edges")
    ids = _port_ids(element, "input")
    wanted = element.get("id"), ids[port] if port < len(ids) else None
    return next((e for e in edges if (e.get("to-layer"), e.get("to-port")) == wanted), None)


def _sibling(element: Any, id: int) -> Any:
    return next(e for e in element.getparent() if e.get("id") == str(id))


WAYS: tuple[Make, ...] = (attribute, constant, kind, version, rewire, add, remove)


def plant(model: Copy, rng: np.random.Generator) -> tuple[Edit, Difference] | None:
    """A random edit and the difference that `diff` reports; None if it does not apply to this model."""
    way = WAYS[int(rng.integers(len(WAYS)))]
    model.reset()
    edit = copy.copy(way(model, rng))
    if edit is None:
        return None
    try:
        return edit, model.diff()
    except IRError:  # the copy is invalid, for example an attribute does not suit the others
        return None


def run(files: Sequence[Path], count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Apply the edits, spread over the files. Returns the number of each kind, and the edits not reported exactly."""
    counts: Counter[str] = Counter()
    missed: list[str] = []
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        models: dict[Path, Copy] = {}
        for attempt in range(count * 20):
            if counts.total() == count:
                break
            xml = files[attempt % len(files)]
            if xml not in models:
                models[xml] = Copy(xml, Path(folder))
            planted = plant(models[xml], rng)
            if planted is None:
                continue
            edit, way = planted
            counts[edit.what or edit.kind] += 1
            if not edit.is_found(way):
                missed.append("\n  ".join([f"{xml}: {edit}: {way.summary}", *way.lines()[:12]]))
    return counts, missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    files = [f for folder in arguments.folders for f in sorted(folder.rglob("*.xml"))]
    counts, missed = run(files, arguments.count, arguments.seed)
    print("\n".join(missed))
    kinds = ", ".join(f"{n} {k}" for k, n in counts.items())
    print(f"{counts.total()} edits ({kinds}), {len(missed)} not reported exactly")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
