"""Changes after which the file probably still runs: other graphs over the same tensors, to test inference and plans."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from lxml import etree

from tests.fuzz.mutant import Element, Mutant, edges, layer_of, layer_with, layers

UNARY = (
    *('"ReLU" version="opset1"', '"Sigmoid" version="opset1"', '"Tanh" version="opset1"', '"Abs" version="opset1"'),
    *('"Negative" version="opset1"', '"Exp" version="opset1"', '"HSwish" version="opset4"', '"Sign" version="opset1"'),
    *('"Softmax" version="opset8"', '"Convert" version="opset1"', '"LogSoftmax" version="opset5"'),
)


def _outputs(graph: Element) -> list[Element]:
    return [p for x in layers(graph) for p in x.findall("output/port")]


def _sides(port: Element) -> tuple[str | None, list[str]]:
    return port.get("precision"), [d.text or "" for d in port.findall("dim")]


def _later(graph: Element, start: str) -> set[str]:
    """The ids of the layers that depend on a layer, itself included."""
    reached, pending = {start}, [start]
    while pending:
        here = pending.pop()
        new = {e.get("to-layer") for e in edges(graph) if e.get("from-layer") == here} - reached
        reached |= new
        pending += new
    return reached


def _edge_of(m: Mutant, end: str) -> tuple[Element, Element, Element]:
    """A graph, one of its edges, and the layer at one end of that edge; None if there is no edge."""
    graph = m.graph()
    edge = m.of([] if graph is None else edges(graph))
    return (graph, edge, None) if edge is None else (graph, edge, layer_with(graph, edge.get(end)))


def rewire(m: Mutant) -> bool:
    """Start an edge at another tensor of the same type and mostly the same shape."""
    graph, edge, target = _edge_of(m, "to-layer")
    if target is None:
        return False
    port = m.of([p for p in target.findall("input/port") if p.get("id") == edge.get("to-port")])
    if port is None:
        return False
    after = _later(graph, edge.get("to-layer"))
    others = [p for p in _outputs(graph) if layer_of(p).get("id") not in after and _sides(p)[0] == _sides(port)[0]]
    if m.chance(0.75):
        others = [p for p in others if _sides(p) == _sides(port)]
    other = m.of(others)
    if other is None:
        return False
    edge.set("from-layer", layer_of(other).get("id"))
    edge.set("from-port", other.get("id"))
    return m.note(f"{target.get('name')}:{port.get('id')} is fed by {layer_of(other).get('name')}")


def swap(m: Mutant) -> bool:
    """Swap two inputs of a layer."""
    layer = m.of([x for x in m.all("layer") if len(x.findall("input/port")) > 1])
    if layer is None:
        return False
    one, other = m.of(layer.findall("input/port")), m.of(layer.findall("input/port"))
    a, b = one.get("id"), other.get("id")
    for edge in edges(layer.getparent().getparent()):
        if edge.get("to-layer") == layer.get("id") and edge.get("to-port") in (a, b):
            edge.set("to-port", b if edge.get("to-port") == a else a)
    return a != b and m.note(f"inputs {a} and {b} of {layer.get('name')} exchanged")


def _fresh(graph: Element) -> str:
    numbers = [int(x.get("id", "0")) for x in layers(graph) if x.get("id", "").isdecimal() and len(x.get("id")) < 9]
    return str(1 + max(numbers, default=0))


def _layer(m: Mutant, graph: Element, what: str, source: Element, *, result: bool = False) -> str:
    """Add a layer of one input and, unless it is a Result, one output like it. Returns its id."""
    id, precision = _fresh(graph), quoteattr(source.get("precision", "FP32"))
    dims = "".join(f"<dim>{d}</dim>" for d in _sides(source)[1])
    data = {'"Convert"': '<data destination_type="f16"/>', '"Softmax"': '<data axis="-1"/>'}
    line = data.get(what.split()[0], '<data axis="-1"/>' if "Softmax" in what else "")
    ports_text = "" if result else f'<output><port id="1" precision={precision}>{dims}</port></output>'
    text = (
        f'<layer id="{id}" name="added{id}" type={what}>{line}<input><port id="0" precision={precision}>{dims}</port>'
        f"</input>{ports_text}</layer>"
    )
    graph.find("layers").append(etree.fromstring(text))
    _edge(graph, layer_of(source).get("id"), source.get("id"), id, "0")
    return id


def _edge(graph: Element, *ends: str) -> None:
    names = ("from-layer", "from-port", "to-layer", "to-port")
    etree.SubElement(graph.find("edges"), "edge", dict(zip(names, ends, strict=True)))


def tap(m: Mutant) -> bool:
    """Make an inner tensor an output of the model, too."""
    source = None if m.root.find("edges") is None else m.of(_outputs(m.root))
    if source is None or source.get("id") is None or layer_of(source).get("id") is None:
        return False
    _layer(m, m.root, '"Result" version="opset1"', source, result=True)
    return m.note(f"a Result for {layer_of(source).get('name')}")


def insert(m: Mutant) -> bool:
    """Insert a unary function into an edge."""
    graph, edge, start = _edge_of(m, "from-layer")
    if start is None:
        return False
    source = m.of([p for p in start.findall("output/port") if p.get("id") == edge.get("from-port")])
    if source is None:
        return False
    what = m.of(UNARY)
    id = _layer(m, graph, what, source)
    edge.set("from-layer", id)
    edge.set("from-port", "1")
    return m.note(f"{what} after {start.get('name')}")


def bypass(m: Mutant) -> bool:
    """Bypass a layer: its consumers use its input."""
    graph = m.graph()
    layer = None if graph is None else m.of([x for x in layers(graph) if x.findall("input/port")])
    if layer is None:
        return False
    back = m.of([e for e in edges(graph) if e.get("to-layer") == layer.get("id")])
    if back is None:
        return False
    users = [e for e in edges(graph) if e.get("from-layer") == layer.get("id")]
    for edge in users:
        edge.set("from-layer", back.get("from-layer", ""))
        edge.set("from-port", back.get("from-port", ""))
    return bool(users) and m.note(f"{layer.get('name')} bypassed")


def loosen(m: Mutant) -> bool:
    """Let a Parameter accept other sizes, any rank or any type."""
    data = m.of([d for x in m.all("layer") if x.get("type") == "Parameter" for d in x.findall("data")])
    if data is None:
        return False
    if m.chance(0.1):
        data.set("element_type", "dynamic")
    elif m.chance(0.15):
        data.set("shape", "...")
    else:
        items = data.get("shape", "").split(",")
        k = m.between(0, len(items) - 1)
        items[k] = m.of(("?", "?", "1..7", "..9", "0..3", "3..", "0", "1", "2", "5"))
        data.set("shape", ",".join(items))
    return m.note(f"Parameter of {data.get('element_type')} [{data.get('shape')}]")


def twice(m: Mutant) -> bool:
    """Feed one tensor to two inputs of a layer."""
    layer = m.of([x for x in m.all("layer") if len(x.findall("input/port")) > 1])
    if layer is None:
        return False
    own = [e for e in edges(layer.getparent().getparent()) if e.get("to-layer") == layer.get("id")]
    one, other = m.of(own), m.of(own)
    if one is None or one is other:
        return False
    for key in ("from-layer", "from-port"):
        one.set(key, other.get(key, ""))
    return m.note(f"{layer.get('name')} reads one tensor twice")


PLAUSIBLE = (rewire, rewire, rewire, swap, tap, tap, insert, insert, bypass, loosen, loosen, twice)
