"""The f32 twin of a program in f16 or bf16: plans compute in f32 and round only the results.

The twin has the same layers, with constants and inputs widened to f32. Operations whose operands plans do not widen
(bodies, states), and Converts to 16-bit floats, round in a plan but not in the twin; `rounded_inside` returns the type.
"""

from __future__ import annotations

import numpy as np
from lxml import etree

from irload.core.element import element
from irload.graph import Node
from irload.model import Model
from irload.plan.wide import SHORT, takes_its_own_types

NAMES = {kind.name for kind in SHORT.values()}
TYPED = ("element_type", "destination_type", "variable_type", "output_type")


def widened(xml: bytes, blob: bytes) -> tuple[bytes, bytes]:
    """(XML, weights) of the twin."""
    net = etree.fromstring(xml)
    weights = bytearray(blob)
    for data in net.iter("data"):
        for name in TYPED:
            if data.get(name) in NAMES:
                if data.get("offset") is not None:
                    _widen_constant(data, blob, weights)
                data.set(name, "f32")
    for port in net.iter("port"):
        if port.get("precision") in ("FP16", "BF16"):
            port.set("precision", "FP32")
    return etree.tostring(net), bytes(weights)


def _widen_constant(data: etree._Element, blob: bytes, weights: bytearray) -> None:
    offset, size = int(data.get("offset")), int(data.get("size"))
    dtype = element(data.get("element_type")).dtype
    wide = np.frombuffer(blob[offset : offset + size - size % dtype.itemsize], dtype).astype(np.float32).tobytes()
    weights += b"\0" * (-len(weights) % 8)
    data.set("offset", str(len(weights)))
    data.set("size", str(max(len(wide), 1)))
    weights += wide or b"\0"


def rounded_inside(model: Model) -> str:
    """The type to which plans round intermediate values of some operations: "f16", "bf16", or "" if there is none."""
    nodes = [n for graph in model.walk() for n in graph.nodes if n.type != "Const"]
    names = {o.type.element.name for n in nodes if takes_its_own_types(n) for o in (*n.inputs, *n.outputs)}
    names |= {n.outputs[0].type.element.name for n in nodes if n.type == "Convert" and _rounds(n)}
    return next((name for name in ("bf16", "f16") if name in names), "")


def _rounds(convert: Node) -> bool:
    before, after = convert.inputs[0].type.element, convert.outputs[0].type.element
    return (before.is_float or before.bits > 8) and after.name in NAMES
