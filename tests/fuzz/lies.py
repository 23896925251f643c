"""Lies: files that are false by construction, so `check` has to report them.

The base declares the true shape and type at every port. A lie changes one declaration so that it contradicts the
others: a size that inference computes, a type, an edge to a missing layer. Changes that may produce another valid file
(another offset into the .bin, another name, −1 for a size) are not lies and are excluded.
"""

from __future__ import annotations

from irload.errors import IRError
from irload.ops.registry import resolve
from tests.fuzz.mutant import Element, Mutant, copied, edges, layer_of, layer_with, layers

ENDS = ("from-layer", "from-port", "to-layer", "to-port")
PRECISIONS = ("FP32", "FP16", "BF16", "FP64", "I64", "I32", "I8", "U8", "U4", "BOOL", "STRING")
TYPES = ("f32", "f16", "i64", "i32", "u8", "boolean", "f64", "bf16", "i4")
MAPS = ("port_map", "then_port_map", "else_port_map")


def _sized(m: Mutant) -> list[Element]:
    """The dims with known sizes."""
    return [d for d in m.all("dim") if d.getparent().tag == "port" and (d.text or "").strip().isdecimal()]


def _other(m: Mutant, size: int) -> int:
    return m.of([n for n in (size + 1, size * 2, size - 1, 0, 1, 99, 2**40) if n != size and n >= 0])


def size(m: Mutant) -> bool:
    """A port declares another size than the known one."""
    dim = m.of(_sized(m))
    if dim is None:
        return False
    old, dim.text = dim.text, str(_other(m, int(dim.text)))
    return m.note(f"{_place(dim)}: dim {old} → {dim.text}")


def rank(m: Mutant) -> bool:
    """A port declares another rank than the known one, which is not 0."""
    port = m.of([p for p in m.all("port") if len(p.findall("dim")) > 1])
    if port is None:
        return False
    dims = port.findall("dim")
    if m.chance(0.5):
        port.remove(m.of(dims))
    else:
        port.insert(0, copied(m.of(dims)))
    return m.note(f"{_place(port)}: rank {len(dims)} → {len(port.findall('dim'))}")


def precision(m: Mutant) -> bool:
    """A port declares another element type."""
    port = m.of([p for p in m.all("port") if p.get("precision") not in (None, "UNSPECIFIED")])
    if port is None:
        return False
    old, new = port.get("precision"), m.of(PRECISIONS)
    port.set("precision", new)
    return old != new and m.note(f"{_place(port)}: {old} → {new}")


def parameter(m: Mutant) -> bool:
    """A Parameter's attributes contradict its port."""
    layer = m.of([x for x in m.all("layer") if x.get("type") == "Parameter" and x.find("output/port/dim") is not None])
    if layer is None:
        return False
    data = layer.find("data")
    if m.chance(0.5):
        old, new = data.get("element_type"), m.of(TYPES)
        data.set("element_type", new)
        return old != new and m.note(f"Parameter is {new}, was {old}")
    items = data.get("shape").split(",")
    known = [k for k, item in enumerate(items) if item.strip().isdecimal()]
    if not known:
        return False
    k = m.of(known)
    items[k] = str(_other(m, int(items[k])))
    data.set("shape", ",".join(items))
    return m.note(f"Parameter is {data.get('shape')}, axis {k} was another")


def constant(m: Mutant) -> bool:
    """A Const whose type, shape, range and port are inconsistent, or whose range exceeds the weights."""
    options = [x.find("data") for x in m.all("layer") if x.get("type") == "Const"]
    data = m.of([d for d in options if "0" not in d.get("shape", "").split(",")])
    if data is None:
        return False
    key = m.of(("offset", "size", "shape", "element_type"))
    old = data.get(key)
    if key == "offset":
        new = str(
            m.of((len(m.blob or b"") + 1, 2**63, 2**64 - 1, 10**18, len(m.blob or b"") - int(data.get("size")) + 1))
        )
    elif key == "size":
        new = str(m.of((0, int(old) - 1, int(old) + 1, int(old) * 2, 2**62, 2**64 - 1)))
    elif key == "shape":
        items = old.split(",") if old else ["1"]
        k = m.between(0, len(items) - 1)
        items[k] = str(m.of((int(items[k]) + 1, int(items[k]) * 3, 2**40)))
        new = ",".join(items)
    else:
        new = m.of(TYPES)
    data.set(key, new)
    return old != new and m.note(f"{_place(data)}: {key} {old} → {new}")


def identity(m: Mutant) -> bool:
    """Two layers of one graph, or two ports of one layer, have one id."""
    graph = m.graph()
    candidates = [] if graph is None else layers(graph)
    if m.chance(0.5) and candidates:
        candidates = (m.of(candidates)).findall("*/port")
    one, other = m.of(candidates), m.of(candidates)
    if one is None or one is other:
        return False
    one.set("id", other.get("id"))
    return m.note(f"id {one.get('id')} of <{one.tag}> twice")


def edge(m: Mutant) -> bool:
    """An edge is missing, duplicated, has no target, or closes a cycle."""
    graph = m.graph()
    chosen = None if graph is None else m.of(edges(graph))
    if chosen is None:
        return False
    roll = m.between(0, 3)
    if roll == 0:
        chosen.getparent().remove(chosen)
    elif roll == 1:
        chosen.getparent().append(copied(chosen))
    elif roll == 2:
        chosen.set(m.of(ENDS), m.of(("777", str(2**40))))
    else:
        own = layer_with(graph, chosen.get("to-layer"))
        if own is None or own.find("output/port") is None:
            return False
        out = own.find("output/port")
        chosen.set("from-layer", own.get("id"))
        chosen.set("from-port", out.get("id"))
    return m.note(("an edge less", "an edge twice", "an edge to nowhere", "a layer that feeds itself")[roll])


def source(m: Mutant) -> bool:
    """An edge starts at a tensor of another element type than its target port declares."""
    graph = m.graph()
    chosen = None if graph is None else m.of(edges(graph))
    if chosen is None:
        return False
    candidates = layers(graph)
    target = next(x for x in candidates if x.get("id") == chosen.get("to-layer"))
    port = next(p for p in target.findall("input/port") if p.get("id") == chosen.get("to-port"))
    known = (None, "UNSPECIFIED", port.get("precision"))
    if port.get("precision") in known[:2]:
        return False
    others = [p for x in candidates for p in x.findall("output/port") if p.get("precision") not in known]
    other = m.of(others)
    if other is None:
        return False
    chosen.set("from-layer", layer_of(other).get("id"))
    chosen.set("from-port", other.get("id"))
    return m.note(f"{other.get('precision')} feeds a port of {port.get('precision')}")


def port(m: Mutant) -> bool:
    """A layer has one port too many, or one fewer than its edges use."""
    side = m.of([s for s in m.all("input", "output") if s.find("port") is not None])
    if side is None:
        return False
    if m.chance(0.5):
        gone = m.of(side.findall("port"))
        if side.tag == "output" and not _is_used(gone):
            return False
        side.remove(gone)
        return m.note(f"{_place(side)}: an {side.tag} port less")
    twin = copied(side.findall("port")[-1])
    twin.set("id", "500")
    twin.attrib.pop("names", None)
    side.append(twin)
    return m.note(f"{_place(side)}: an {side.tag} port more")


def _is_used(port: Element) -> bool:
    layer = layer_of(port)
    graph = layer.getparent().getparent()
    return any((e.get("from-layer"), e.get("from-port")) == (layer.get("id"), port.get("id")) for e in edges(graph))


def wiring(m: Mutant) -> bool:
    """A port map names a missing port or layer, names one twice, or omits one."""
    line = m.of([line for part in m.all(*MAPS) for line in part])
    if line is None:
        return False
    roll = m.between(0, 3)
    if roll == 0:
        line.set("internal_layer_id", "777")
    elif roll == 1 and line.get("external_port_id") != "-1":
        line.set("external_port_id", "777")
    elif roll == 2 and line.tag == "output" and line.get("external_port_id") != "-1":
        line.getparent().append(copied(line))
    elif roll == 3 and not _carried(line):
        line.getparent().remove(line)
    else:
        return False
    words = ("no such layer", "no such port", "an output twice", "a line less")
    return m.note(f"<{line.tag}> of a port map: {words[roll]}")


def _carried(line: Element) -> bool:
    """Whether a port map entry may omit its external port: a back edge feeds its Parameter, or it is output −1."""
    layer = line.getparent().getparent()
    back = layer.find("back_edges")
    fed = [] if back is None else [e.get("to-layer") for e in back]
    return line.get("internal_layer_id") in fed or (line.tag == "output" and line.get("external_port_id") == "-1")


def back_edge(m: Mutant) -> bool:
    """A back edge starts or ends at a layer that does not exist."""
    line = m.of([line for part in m.all("back_edges") for line in part])
    if line is None:
        return False
    line.set(m.of(("from-layer", "to-layer")), "777")
    return m.note("a back edge to nowhere")


def operation(m: Mutant) -> bool:
    """An unknown operation, an invalid value of an attribute, or a missing required attribute."""
    layer = m.one("layer")
    if layer is None:
        return False
    try:
        cls = resolve(layer.get("type", ""), layer.get("version", ""))[0]
    except IRError:
        return False
    data = layer.find("data") if layer.find("data") is not None else layer.makeelement("data", {})
    present = {a.xml_name: a for a in cls.declared.values() if a.xml_name in data.attrib}
    words = sorted(k for k, a in present.items() if a.kind.startswith("one of"))
    required = sorted(k for k, a in present.items() if a.required)
    roll = m.between(0, 2)
    if roll == 1 and words:
        name = m.of(words)
        data.set(name, "nonsense")
        return m.note(f"{_place(data)}: {name} = nonsense")
    if roll == 2 and required:
        name = m.of(required)
        del data.attrib[name]
        return m.note(f"{_place(data)}: no {name}")
    layer.set("type", layer.get("type") + "X")
    return m.note(f"{layer.get('type')}: no such operation")


def version(m: Mutant) -> bool:
    """An opset without a number, or with a number that does not exist."""
    layer = m.of([x for x in m.all("layer") if x.get("version", "").startswith("opset")])
    if layer is None:
        return False
    layer.set("version", m.of(("opset", "opset0", "opset01", "Opset1")))
    return m.note(f"{layer.get('type')}: version {layer.get('version')}")


def fed_twice(m: Mutant) -> bool:
    """Two back edges, or two inputs, end at one Parameter of a body."""
    ends = {"edge": "from-layer", "input": "external_port_id"}
    line = m.of([line for name in (*MAPS, "back_edges") for part in m.all(name) for line in part if line.tag in ends])
    if line is None:
        return False
    again = copied(line)
    again.set(ends[line.tag], str(int(line.get(ends[line.tag]) or 0) + m.between(1, 3)))
    line.addnext(again)
    return m.note(f"a second {line.tag} into layer {line.get('to-layer') or line.get('internal_layer_id')}")


def layout(m: Mutant) -> bool:
    """A layout with more axes than the input."""
    layer = m.of([x for x in m.all("layer") if x.get("type") == "Parameter" and x.find("output/port/dim") is not None])
    if layer is None:
        return False
    axes = "NCDHWABEF"[: len(layer.findall("output/port/dim")) + m.between(1, 2)]
    info = layer.makeelement("rt_info", {})
    info.append(layer.makeelement("attribute", {"name": "layout", "version": "0", "layout": f"[{','.join(axes)}]"}))
    layer.find("output").addprevious(info)
    return m.note(f"{layer.get('name')}: layout {axes}")


def weights(m: Mutant) -> bool:
    """The .bin file is truncated or extended."""
    if not m.blob:
        return False
    m.blob = m.blob[: m.between(0, len(m.blob) - 1)] if m.chance(0.6) else m.blob + bytes(4096)
    return m.note(f".bin of {len(m.blob)} bytes, was {len(m.base.blob)}")


def _place(element: Element) -> str:
    layer = layer_of(element)
    side = element if element.tag in ("input", "output") else element.getparent()
    return f"{layer.get('type')} '{layer.get('name')}' (id {layer.get('id')}) <{side.tag}>"


LIES = (
    *(size, size, size, rank, precision, precision, parameter, constant, constant, identity, edge, edge, source, port),
    *(wiring, wiring, back_edge, operation, weights, version, fed_twice, layout),
)
