"""f32 constants as f16 with a Convert behind them: what `compress_to_fp16` does to a model on its way to disk."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from irload.core.registry import resolve
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.graph import Graph, Node, Output

F16_MAX = 65504.0
F16_TINY = 2.0**-24
OUT_OF_RANGE = 0.75
"""A constant stays f32 when this share of its values, or more, does not fit f16."""

_KEEPS_F32 = frozenset(
    {"Interpolate", "Range", "NonMaxSuppression", "PriorBox", "PriorBoxClustered", "Proposal", "TopK"}
)
"""Consumers for which a rounded constant would change shapes or selections."""


def compressed(values: Array) -> Array | None:
    """The f16 values: clamped to its range, below half its smallest subnormal zero. None when too many do not fit."""
    magnitude = np.abs(values)
    misfits = (magnitude > F16_MAX) | ((magnitude < F16_TINY) & (values != 0))
    if values.size and np.count_nonzero(misfits) >= OUT_OF_RANGE * values.size:
        return None
    return np.clip(values, -F16_MAX, F16_MAX).astype(np.float16)


def compress(graph: Graph) -> dict[Node, tuple[Node, Node]]:
    """For each constant that is to be halved, its f16 constant and the Convert that takes its place."""
    consumers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for source in node.inputs:
            consumers.setdefault(source.node, []).append(node)
    replaced: dict[Node, tuple[Node, Node]] = {}
    for node in graph.nodes:
        if node.type != "Const" or node.op.attributes["element_type"] not in (et.f32, et.f64):
            continue
        users = consumers.get(node, [])
        # A user with a known value is shape arithmetic: nothing there may round.
        if any(u.type in _KEEPS_F32 or any(o.type.value is not None for o in u.outputs) for u in users):
            continue
        halves = compressed(node.op.attributes["data"]())
        if halves is not None:
            replaced[node] = _pair(node, halves)
    return replaced


def _pair(node: Node, halves: Array) -> tuple[Node, Node]:
    const, convert = resolve("Const", "opset1")[0], resolve("Convert", "opset1")[0]
    shape = Shape(*halves.shape)
    small = Node(
        -1,
        f"{node.name}_compressed",
        const(element_type=et.f16, shape=shape, offset=0, size=halves.nbytes, data=lambda: halves),
    )
    small.outputs = [Output(small, 0, type=TensorType(et.f16, shape))]
    wide = Node(-1, node.name, convert(destination_type=node.op.attributes["element_type"]), [small.outputs[0]])
    wide.rt_info = [{"name": "decompression", "version": "0"}]
    wide.outputs = [Output(wide, 0, node.outputs[0].names, type=node.outputs[0].type)]
    return small, wide
