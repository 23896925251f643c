"""Criteria of equality of single layers, without names, ids and neighbours: the initial colours of matching."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

import numpy as np

from irload.core.shape import Shape
from irload.core.subgraph import Subgraph
from irload.graph import Graph, Node, UnknownOp, subgraphs

__all__ = ["CRITERIA", "attribute_texts", "exact", "is_constant", "role", "similar", "typed"]

NAMELIKE = frozenset({"variable_id"})
"""Attributes that only name something."""


def exact(node: Node) -> Hashable:
    """Type, version, attributes, the content of constants and of bodies."""
    if is_constant(node):
        return "Const", str(node.op.attributes["element_type"]), digest(node)
    bodies = tuple(_content(body) for _, body in sorted(subgraphs(node).items()))
    return node.type, node.op.opset if node.type not in ("Parameter", "Result") else "", _attributes(node), bodies


def similar(node: Node) -> Hashable:
    """Type and attributes; of constants, the element type and the shape."""
    if is_constant(node):
        return "Const", str(node.op.attributes["element_type"]), str(node.op.attributes["shape"])
    return node.type, _attributes(node), len(node.inputs)


def typed(node: Node) -> Hashable:
    """The type alone."""
    return node.type


def role(node: Node) -> Hashable:
    """Whether the layer computes something: an edit may have replaced its type."""
    return node.type if node.type in ("Const", "Parameter", "Result") else "computes"


CRITERIA = (exact, similar, typed, role)
"""Criteria of matching, from the strictest to the loosest."""


def is_constant(node: Node) -> bool:
    """Whether the node is a Const of the file, with readable data."""
    return node.type == "Const" and not isinstance(node.op, UnknownOp)


def digest(node: Node) -> bytes:
    """A hash of the shape and the elements of a constant. Raises ReadError where its data cannot be read."""
    array = node.op.attributes["data"]()
    hasher = hashlib.sha256(repr(array.shape).encode())
    hasher.update(
        repr(array.tolist()).encode()
        if array.dtype == object
        else np.ascontiguousarray(array).data.cast("B")
        if array.dtype.kind not in "V" and array.size and array.dtype.isbuiltin == 1
        else np.ascontiguousarray(array).tobytes()
    )
    return hasher.digest()


def attribute_texts(node: Node) -> dict[str, str | None]:
    """Return the attributes as text; None for an attribute whose value is None."""
    if isinstance(node.op, UnknownOp):
        return dict(node.op.text)
    texts: dict[str, str | None] = {}
    for name, declaration in node.op.declared.items():
        if not declaration.supplied:
            value = node.op.attributes[name]
            text = None if value is None else declaration.write(value)
            texts[declaration.xml_name] = f"[{text}]" if isinstance(value, Shape) else text
    return texts


def _attributes(node: Node) -> Hashable:
    return tuple((k, v) for k, v in attribute_texts(node).items() if k not in NAMELIKE)


def _content(subgraph: Subgraph) -> Hashable:
    """The layers of a body in any order."""
    body = subgraph.body
    return tuple(sorted(map(repr, map(exact, body.nodes)))) if isinstance(body, Graph) else ()
