"""Converts float constants to f16 followed by a Convert, as `compress_to_fp16` requests.

Selects the same constants as OpenVINO's `save_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.graph import Graph, Node, Output, ancestors
from irload.model import Model
from irload.ops.registry import resolve

F16_MAX = 65504.0
MISFITS = 0.75
"""A constant is not converted if at least this share of its values does not fit f16."""
TOLERANCE = 1e-3
SCALAR_TOLERANCE = 1e-4
"""The relative error up to which a value fits f16, for constants of one value (an epsilon, a scale)."""
ABSOLUTE_TOLERANCE = 1.0

_SHAPING = {
    "BatchToSpace": (1, 2, 3),
    "Broadcast": (1,),
    "ConvolutionBackpropData": (2,),
    "GroupConvolutionBackpropData": (2,),
    "Interpolate": (1, 2),
    "OneHot": (1,),
    "Pad": (1, 2),
    "Reshape": (1,),
    "SpaceToBatch": (1, 2, 3),
    "StridedSlice": (1, 2, 3),
    "Tile": (1,),
    "TopK": (1,),
}
"""Type → inputs that determine shapes. Constants on a path to these inputs, after any ShapeOf, are not rounded."""

_PACKED = frozenset({et.i4, et.u4, et.i8, et.u8, et.nf4, et.f8e4m3, et.f8e5m2})


def halves(values: Array, element: et.ElementType) -> Array | None:
    """The values as f16, clamped to its range. None if too many do not fit, or if the constant is empty."""
    if not values.size:
        return None
    with np.errstate(all="ignore"):
        result = np.clip(values, -F16_MAX, F16_MAX).astype(np.float16)
        error = np.abs(result.astype(values.dtype) - values)
        tolerance = SCALAR_TOLERANCE if values.size == 1 else TOLERANCE
        # Comparisons with NaN are false, so NaN counts as a misfit.
        fits = (error <= ABSOLUTE_TOLERANCE) & (error <= tolerance * np.abs(values)) & (np.abs(values) <= F16_MAX)
    return None if np.count_nonzero(~fits) >= MISFITS * values.size else result


def bfloats(values: Array, element: et.ElementType) -> Array | None:
    """The values as bf16, which has the range of f32. None for fewer than two values, for example an epsilon."""
    return None if values.size < 2 else values.astype(et.bf16.dtype)


Shorten = Callable[[Array, et.ElementType], Array | None]
"""Rounds the values of a constant of this type to 16 bits; None if it must stay unchanged."""


def is_compressed(model: Model) -> bool:
    """True for a model with quantized activations or weights, whose remaining float constants need their precision."""
    return any(
        n.type in ("FakeQuantize", "FakeConvert") or _is_dequantization(n) for g in model.walk() for n in g.nodes
    )


def _is_dequantization(node: Node) -> bool:
    """Const of a packed type → Convert [→ Subtract a zero point] → Multiply by a Const."""
    if node.type != "Multiply" or len(node.inputs) != 2:
        return False
    first, second = (i.node for i in node.inputs)
    for source, scale in ((first, second), (second, first)):
        if scale.type == "Const":
            inner = source.inputs[0].node if source.type == "Subtract" and source.inputs else source
            if inner.type == "Convert" and inner.inputs and _is_packed(inner.inputs[0].node):
                return True
    return False


def _is_packed(node: Node) -> bool:
    return node.type == "Const" and node.op.attributes.get("element_type") in _PACKED


def replacements(graph: Graph, shorten: Shorten = halves) -> dict[Node, tuple[Node, Node]]:
    """For each constant to convert, its constant of 16 bits and the Convert that replaces it."""
    shapes = (node.inputs[k].node for node in graph.nodes for k in _SHAPING.get(node.type, ()) if k < len(node.inputs))
    shaping = set(ancestors(shapes, {node for node in graph.nodes if node.type == "ShapeOf"}))
    replaced: dict[Node, tuple[Node, Node]] = {}
    for node in graph.nodes:
        if _is_candidate(node, shaping):
            halved = shorten(node.op.attributes["data"](), node.op.attributes["element_type"])
            if halved is not None:
                replaced[node] = _pair(node, halved)
    return replaced


def _is_candidate(node: Node, shaping: Collection[Node]) -> bool:
    precise = any(entry.get("name") == "precise" for entry in node.rt_info)
    floats = node.type == "Const" and node.op.attributes.get("element_type") in (et.f32, et.f64)
    return floats and node.reachable and not precise and node not in shaping


def _pair(node: Node, values: Array) -> tuple[Node, Node]:
    const, convert = resolve("Const", "opset1")[0], resolve("Convert", "opset1")[0]
    shape = Shape(*values.shape)
    element, offset = et.element_of_dtype(values.dtype), node.op.attributes["offset"]
    data = partial(np.asarray, values)
    op = const(element_type=element, shape=shape, offset=offset, size=values.nbytes, data=data)
    small = Node(-1, f"{node.name}_compressed", op)
    small.outputs = [Output(small, 0, type=TensorType(element, shape))]
    wide = Node(-1, node.name, convert(destination_type=node.op.attributes["element_type"]), [small.outputs[0]])
    wide.rt_info = [*node.rt_info, {"name": "decompression", "version": "0"}]
    wide.outputs = [Output(wide, 0, node.outputs[0].names, type=node.outputs[0].type)]
    return small, wide
