"""Damages values: dims, attributes, element types, numbers and names, and the integers among the constants."""

from __future__ import annotations

import struct

import numpy as np

from irload.core import element as et
from irload.errors import IRError
from irload.ops.registry import resolve
from tests.fuzz.mutant import Element, Mutant

WHOLE = (-(2**63) - 1, -(2**63), -(2**31), -1000, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 100, 1000, 65536)
HUGE = (10**6, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**18, 10**19, 10**30)
REAL = ("-1", "-0.5", "-0.0", "0", "0.5", "1", "2", "1e-300", "1e-45", "3.5e38", "1e30", "1e400", "nan", "-nan")
ODD = (
    "inf",
    "-inf",
    "",
    " ",
    "x",
    "1.5",
    "1e3",
    "--1",
    "+1",
    "0x10",
    "1_0",
    "１２",
    "٣",
    "²",
    "1,2",
    "1;2",
    "1,,2",
    ",",
)
WORDS = ("", "nonsense", "EXPLICIT", "valid", "none", "numpy", "bidirectional", "linear", "tf_crop", "0", "true", "max")
NAMES = ("", " ", "a" * 5000, "a,b", "a\\,b", "\\", "ä☃\U0001f600", "<&>", '"', "x\ny", "{}", "%s", "../../etc/passwd")
PRECISIONS = tuple(e.precision for e in et.ELEMENTS)
TYPES = (*(e.name for e in et.ELEMENTS), "undefined", "nonsense", "", "F32", "FP32", "i128")
SHAPES = (
    "",
    "?",
    "...",
    "-1",
    "0",
    "1",
    "1..",
    "..5",
    "3..1",
    "?,?",
    "1,2,3,4,5,6,7,8",
    "1" + ",1" * 64,
    "10000000000",
)


def integer(m: Mutant) -> int:
    """An integer that is likely to cause errors."""
    return m.of(WHOLE) if m.chance(0.75) else m.of(HUGE)


def number_text(m: Mutant) -> str:
    """The text of a number, or a similar text."""
    return str(integer(m)) if m.chance(0.6) else m.of(REAL) if m.chance(0.7) else m.of(ODD)


def dim(m: Mutant) -> bool:
    """Change a declared dim."""
    chosen = m.one("dim")
    if chosen is None:
        return False
    old, chosen.text = chosen.text, number_text(m)
    return m.note(f"dim {old} → {chosen.text}")


def dims(m: Mutant) -> bool:
    """Remove or add a dim of a port."""
    chosen = m.one("port")
    if chosen is None:
        return False
    elements = chosen.findall("dim")
    if elements and m.chance(0.5):
        chosen.remove(m.of(elements))
    else:
        for _ in range(m.of((1, 1, 2, 70))):
            extra = chosen.makeelement("dim", {})
            extra.text = number_text(m)
            chosen.insert(m.between(0, len(chosen)), extra)
    return m.note(f"dims of a port: {len(elements)} → {len(chosen.findall('dim'))}")


def attribute(m: Mutant) -> bool:
    """Set an attribute of an operation to a boundary value of its kind, or to any text."""
    data = m.one("data")
    if data is None or not len(data.attrib):
        return False
    name = m.of(sorted(data.attrib))
    old = data.get(name)
    new = attribute_text(m, data, name)
    data.set(name, new)
    return m.note(f"{data.getparent().get('type')} {name}: {old[:60]} → {new[:60]}")


def attribute_text(m: Mutant, data: Element, name: str) -> str:
    """A text that mostly suits the kind of an attribute."""
    kind = _kind(data.getparent(), name)
    if m.chance(0.1):
        kind = "text"
    if kind in ("integers", "numbers"):
        return _list(m, data.get(name, ""))
    if kind == "shape" or name == "shape":
        return m.of(SHAPES) if m.chance(0.4) else _list(m, data.get(name, ""))
    if kind == "element type" or "type" in name:
        return m.of(TYPES)
    if kind.startswith("one of"):
        return m.of(WORDS)
    if kind == "boolean":
        return m.of(("true", "false", "0", "1", "maybe", "", "TRUE", "-1"))
    return m.of((number_text(m), number_text(m), m.of(WORDS), m.of(NAMES), m.of(TYPES)))


def _kind(layer: Element, name: str) -> str:
    try:
        declared = resolve(layer.get("type", ""), layer.get("version", ""))[0].declared
    except IRError:
        return "text"
    return next((a.kind for a in declared.values() if a.xml_name == name), "integers" if name in IDS else "text")


IDS = ("offset", "size", "start", "end")


def _list(m: Mutant, text: str) -> str:
    """A comma-separated list with an item changed, removed or added."""
    items = text.split(",") if text else []
    roll = m.between(0, 9)
    if roll < 5 and items:
        items[m.between(0, len(items) - 1)] = number_text(m)
    elif roll < 6 and items:
        items.pop(m.between(0, len(items) - 1))
    elif roll < 7:
        items += [number_text(m)] * m.of((1, 1, 2, 3, 70))
    elif roll < 8:
        items = [number_text(m)] * max(len(items), 1)
    elif roll < 9:
        items = []
    else:
        return number_text(m)
    return ",".join(items)


def drop_attribute(m: Mutant) -> bool:
    """Remove an attribute."""
    chosen = m.one("data", "layer", "port", "edge", "input", "output", "net")
    if chosen is None or not len(chosen.attrib):
        return False
    name = m.of(sorted(chosen.attrib))
    del chosen.attrib[name]
    return m.note(f"no {name} of <{chosen.tag}>")


def add_attribute(m: Mutant) -> bool:
    """Add an attribute, perhaps one that the operation supports."""
    layer = m.one("layer")
    if layer is None:
        return False
    data = layer.find("data")
    if data is None:
        data = layer.makeelement("data", {})
        layer.insert(0, data)
    try:
        known = [a.xml_name for a in resolve(layer.get("type", ""), layer.get("version", ""))[0].declared.values()]
    except IRError:
        known = []
    name = m.of([k for k in known if k]) or m.of(("axis", "mode", "data", "strange"))
    data.set(name, attribute_text(m, data, name))
    return m.note(f"{layer.get('type')} has {name}={data.get(name)[:60]}")


def precision(m: Mutant) -> bool:
    """Change the precision of a port."""
    chosen = m.one("port")
    if chosen is None:
        return False
    old = chosen.get("precision")
    chosen.set("precision", m.of(PRECISIONS) if m.chance(0.8) else m.of(TYPES))
    return m.note(f"precision {old} → {chosen.get('precision')}")


def operation(m: Mutant) -> bool:
    """Change the type or opset of a layer."""
    layer = m.one("layer")
    if layer is None:
        return False
    old = f"{layer.get('type')} {layer.get('version')}"
    others = sorted({x.get("type", "") for x in m.all("layer")})
    if m.chance(0.6):
        layer.set("type", m.of(OPERATIONS) if m.chance(0.6) else m.of((*others, "", "Foo", "parameter", "a" * 3000)))
    if m.chance(0.6):
        layer.set("version", m.of(VERSIONS))
    return m.note(f"{old[:60]} → {layer.get('type')[:60]} {layer.get('version')}")


VERSIONS = (*(f"opset{k}" for k in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 99)), "", "mine")
OPERATIONS = (
    *("Parameter", "Result", "Const", "Assign", "ReadValue", "Loop", "If", "TensorIterator", "Reshape", "Concat"),
    *("Add", "Convolution", "MatMul", "Gather", "Tile", "Broadcast", "Pad", "Split", "TopK", "NonMaxSuppression"),
    *("Range", "OneHot", "StridedSlice", "Interpolate", "Einsum", "LSTMSequence", "Convert", "ShapeOf", "Unsqueeze"),
    *("ReduceSum", "Transpose", "NonZero", "ScatterUpdate", "Eye", "RandomUniform", "DetectionOutput", "FakeQuantize"),
)


def constant(m: Mutant) -> bool:
    """Change integers of a constant: shapes, axes, counts and indices are constants."""
    options = [d for d in m.all("data") if d.get("element_type") in ("i64", "i32") and d.get("offset", "x").isdecimal()]
    data = m.of(options)
    if data is None or m.blob is None:
        return False
    width = 8 if data.get("element_type") == "i64" else 4
    offset, count = (
        int(data.get("offset")),
        int(data.get("size", "0")) // width if data.get("size", "").isdecimal() else 0,
    )
    if not 0 < count < 1000 or offset + count * width > len(m.blob):
        return False
    for _ in range(m.of((1, 1, 1, 2))):
        k = m.between(0, count - 1)
        low = -(1 << 8 * width - 1)
        value = min(max(integer(m), low), -low - 1)
        struct.pack_into("<q" if width == 8 else "<i", m.blob, offset + k * width, value)
        m.note(f"{data.getparent().get('name')}[{k}] = {value}")
    return True


def name(m: Mutant) -> bool:
    """Rename a layer or a tensor."""
    layer = m.one("layer", "port")
    if layer is None:
        return False
    key = "names" if layer.tag == "port" else m.of(("name", "output_names"))
    others = [x.get("name", "") for x in m.all("layer")]
    new = m.of(others) if m.chance(0.3) else m.of(NAMES)
    layer.set(key, new)
    return m.note(f"{key} of <{layer.tag}> → {new[:60]}")


def header(m: Mutant) -> bool:
    """Change the attributes of <net>."""
    key = m.of(("version", "version", "name"))
    m.root.set(key, m.of(("10", "10", "10", "7", "12", "9" * 30, "１１", "", "11.0", " 11 ", "x")))
    return m.note(f"net {key} = {m.root.get(key)}")


def feeds(m: Mutant) -> bool:
    """Change the inputs: indices out of range, NaN and infinity."""
    k = m.of(range(len(m.inputs)))
    if k is None or not m.inputs[k].size:
        return False
    array = m.inputs[k].copy()
    spot = m.between(0, array.size - 1)
    if array.dtype.kind in "iu":
        least, most = (-(1 << 8 * array.itemsize - 1), (1 << 8 * array.itemsize - 1) - 1)
        if array.dtype.kind == "u":
            least, most = 0, (1 << 8 * array.itemsize) - 1
        value = min(max(integer(m), least), most)
    elif array.dtype.kind == "f":
        value = float(m.of(("nan", "inf", "-inf", "-0.0", "1e30", "-1e30", "1e-40", "0.5")))
    else:
        return False
    with np.errstate(all="ignore"):
        array.flat[spot] = value
    m.inputs[k] = array
    return m.note(f"input {k}[{spot}] = {array.flat[spot]}")


VALUES = (
    *(attribute, attribute, attribute, attribute, attribute, attribute, constant, constant, constant, constant),
    *(dim, dim, dims, drop_attribute, add_attribute, precision, operation, operation, name, header, feeds, feeds),
)
