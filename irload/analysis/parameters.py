"""The number of parameters of a model."""

from __future__ import annotations

from irload.graph import Graph, UnknownOp

__all__ = ["parameters"]

COUNTING = ("i64", "i32", "u64", "u32", "boolean", "string")
"""Element types of shapes, axes, indices and masks, which are not parameters."""


def parameters(model: Graph) -> int:
    """Count the elements of all constants, in bodies too. Constants that share bytes of the .bin file count once."""
    spans: dict[tuple[int, int], int] = {}
    for graph in model.walk():
        for node in graph.nodes:
            if node.type != "Const" or isinstance(node.op, UnknownOp):
                continue
            attributes = node.op.attributes
            count = 0 if attributes["element_type"].name in COUNTING else attributes["shape"].size.lo
            spans.setdefault((attributes["offset"], attributes["size"]), count)
    return sum(spans.values())
