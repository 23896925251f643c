"""Damages the structure: edges, ids, ports, port maps of bodies, and whole subtrees."""

from __future__ import annotations

from tests.fuzz.mutant import BODIES, Element, Mutant, copied, edges, layer_of, layer_with, layers
from tests.fuzz.spoil_values import ODD, number_text

ENDS = ("from-layer", "from-port", "to-layer", "to-port")
MAP_KEYS = ("external_port_id", "internal_layer_id", "axis", "start", "end", "stride", "part_size", "purpose")
PURPOSES = ("", "current_iteration", "execution_condition", "nonsense")


def drop_edge(m: Mutant) -> bool:
    """Remove an edge."""
    edge = m.one("edge")
    if edge is None:
        return False
    edge.getparent().remove(edge)
    return m.note("an edge less")


def double_edge(m: Mutant) -> bool:
    """Duplicate an edge, perhaps from another layer."""
    edge = m.one("edge")
    if edge is None:
        return False
    twin = copied(edge)
    if m.chance(0.5):
        twin.set(m.of(ENDS), number_text(m))
    edge.getparent().append(twin)
    return m.note("an edge twice")


def move_edge(m: Mutant) -> bool:
    """Redirect an edge: to another layer (cycles, self-loops), or to a missing one."""
    graph = m.graph()
    edge = None if graph is None else m.of(edges(graph))
    if edge is None:
        return False
    ids = [x.get("id", "") for x in layers(graph)]
    key = m.of(ENDS)
    if key.endswith("port") or m.chance(0.2):
        new = number_text(m)
    elif m.chance(0.2):
        new = edge.get("to-layer" if key == "from-layer" else "from-layer", "0")
    else:
        new = m.of(ids) or "0"
        other = layer_with(graph, new)
        ports = [] if other is None else other.findall("output/port" if key == "from-layer" else "input/port")
        if ports:
            edge.set("from-port" if key == "from-layer" else "to-port", m.of(ports).get("id", "0"))
    old = edge.get(key)
    edge.set(key, new)
    return m.note(f"{key} {old} → {new}")


def close_circle(m: Mutant) -> bool:
    """Redirect an edge so that a layer consumes the output of its consumer."""
    graph = m.graph()
    candidates = [] if graph is None else edges(graph)
    edge = m.of(candidates)
    if edge is None:
        return False
    after = m.of([e for e in candidates if e.get("from-layer") == edge.get("to-layer")])
    if after is None:
        return False
    back = m.of([e for e in candidates if e.get("to-layer") == edge.get("to-layer")])
    back.set("from-layer", after.get("to-layer"))
    target = layer_with(graph, after.get("to-layer"))
    ports = [] if target is None else target.findall("output/port")
    if ports:
        back.set("from-port", m.of(ports).get("id"))
    return m.note("a cycle")


def identity(m: Mutant) -> bool:
    """Give a layer or port the id of another, or an id that is not a number."""
    chosen = m.one("layer", "port")
    if chosen is None:
        return False
    others = [x.get("id", "") for x in m.all(chosen.tag)]
    old = chosen.get("id")
    chosen.set("id", m.of(others) if m.chance(0.5) else m.of((*ODD, number_text(m), number_text(m), "0" + (old or ""))))
    return m.note(f"id of <{chosen.tag}>: {old} → {chosen.get('id')}")


def port(m: Mutant) -> bool:
    """Remove or duplicate a port, or move it to the other side."""
    chosen = m.one("port")
    if chosen is None:
        return False
    side, roll = chosen.getparent(), m.between(0, 2)
    if roll == 0:
        side.remove(chosen)
    elif roll == 1:
        side.insert(m.between(0, len(side)), copied(chosen))
    else:
        other = m.of([x for x in m.all("input", "output") if x.find("port") is not None])
        other.append(chosen)
    return m.note(("a port less", "a port twice", "a port moved")[roll])


def wiring(m: Mutant) -> bool:
    """Change an entry of a port map or a back edge."""
    tags = ("port_map", "then_port_map", "else_port_map", "back_edges")
    line = m.of([line for part in m.all(*tags) for line in part])
    if line is None:
        return False
    roll = m.between(0, 5)
    if roll == 0:
        line.getparent().remove(line)
        return m.note(f"<{line.tag}> of a port map less")
    if roll == 1:
        line.getparent().append(copied(line))
        return m.note(f"<{line.tag}> of a port map twice")
    key = m.of(("from-layer", "to-layer") if line.tag == "edge" else MAP_KEYS)
    value = m.of(PURPOSES) if key == "purpose" else str(m.between(-3, 8)) if m.chance(0.6) else number_text(m)
    line.set(key, value)
    return m.note(f"<{line.tag}> of a port map: {key} = {value}")


def drop_subtree(m: Mutant) -> bool:
    """Remove an element with its contents."""
    chosen = m.of([x for x in m.root.iter() if x.getparent() is not None])
    if chosen is None:
        return False
    chosen.getparent().remove(chosen)
    return m.note(f"no <{chosen.tag}>")


def double_subtree(m: Mutant) -> bool:
    """Duplicate an element, next to it or elsewhere."""
    chosen = m.of([x for x in m.root.iter() if x.getparent() is not None])
    if chosen is None:
        return False
    place = chosen.getparent() if m.chance(0.5) else m.of([x for x in m.root.iter() if len(x)])
    twin = copied(chosen)
    place.insert(m.between(0, len(place)), twin)
    return m.note(f"<{chosen.tag}> again in <{place.tag}>")


def move_subtree(m: Mutant) -> bool:
    """Move an element elsewhere."""
    chosen = m.of([x for x in m.root.iter() if x.getparent() is not None])
    if chosen is None:
        return False
    inside = set(chosen.iter())
    place = m.of([x for x in m.root.iter() if x not in inside])
    place.insert(m.between(0, len(place)), chosen)
    return m.note(f"<{chosen.tag}> moved into <{place.tag}>")


def swap_bodies(m: Mutant) -> bool:
    """Swap the types and attributes of two layers of one graph."""
    graph = m.graph()
    candidates = [] if graph is None else layers(graph)
    one, other = m.of(candidates), m.of(candidates)
    if one is None or one is other:
        return False
    for key in ("type", "version"):
        a, b = one.get(key, ""), other.get(key, "")
        one.set(key, b)
        other.set(key, a)
    data = [x.find("data") for x in (one, other)]
    if None not in data and m.chance(0.6):
        one.replace(data[0], copied(data[1]))
        other.replace(data[1], copied(data[0]))
    return m.note(f"{other.get('type')} and {one.get('type')} swapped")


def nest(m: Mutant) -> bool:
    """Nest a layer with a body in its body, repeatedly."""
    owner = layer_of(m.one(*BODIES))
    if owner is None:
        return False
    whole = copied(owner)
    for _ in range(m.of((1, 2, 5, 40, 90))):
        outer = copied(owner)
        body = next((x for x in outer if x.tag in BODIES), None)
        target = None if body is None else body.find("layers")
        if target is None:
            return False
        whole.set("id", str(900 + m.between(0, 90)))
        target.append(whole)
        whole = outer
        if len(list(whole.iter())) > 20_000:
            break
    owner.getparent().replace(owner, whole)
    return m.note("bodies nested")


def metadata(m: Mutant) -> bool:
    """Add runtime information, preprocessing and legacy elements at valid and at invalid positions."""
    place: Element = m.one("layer", "port", "net", "body", "layers")
    tag = m.of(
        ("rt_info", "pre-process", "meta_data", "quantization_parameters", "cli_parameters", "statistics", "foo")
    )
    new = place.makeelement(tag, {m.of(("name", "mean-precision", "reference-layer-name", "version")): number_text(m)})
    for _ in range(m.between(0, 3)):
        child = new.makeelement(m.of(("attribute", "channel", "mean", "layer", "framework")), {"id": number_text(m)})
        child.append(
            child.makeelement("mean", {"value": number_text(m), "size": number_text(m), "offset": number_text(m)})
        )
        child.set("name", m.of(("fused_names", "layout", "old_api_map_order", "x")))
        child.set("value", number_text(m))
        new.append(child)
    place.insert(m.between(0, len(place)), new)
    return m.note(f"<{tag}> in <{place.tag}>")


STRUCTURE = (
    *(drop_edge, double_edge, move_edge, move_edge, move_edge, close_circle, identity, identity, port, port),
    *(wiring, wiring, wiring, wiring, drop_subtree, double_subtree, move_subtree, swap_bodies, nest, metadata),
)
