"""Checks of the sizes of tensors against limits, before anything is loaded or computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from irload.analysis.memory import Lifetimes
from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import LimitExceeded
from irload.graph import Graph, Node, Output, UnknownOp
from irload.safety.limits import Limits


def require_size(tensor: TensorType, limits: Limits) -> None:
    """Raise LimitExceeded if even the smallest possible tensor of this type exceeds the limits."""
    size = tensor.shape.size.lo * tensor.element.dtype.itemsize
    if (
        size == 0
        and tensor.shape.is_static
        and prod(max(n, 1) for n in tensor.shape.static) * tensor.element.dtype.itemsize >= 1 << 63
    ):
        raise LimitExceeded(
            f"the output {tensor} exceeds NumPy's largest array, although it is empty", limit="tensor_bytes"
        )
    if size > limits.tensor_bytes:
        limits.require("tensor_bytes", size, f"the output {tensor} is too large")


def require_sizes(graph: Graph, nodes: Sequence[Node], types: Mapping[Output, TensorType], limits: Limits) -> int:
    """Raise LimitExceeded if a tensor, or the sum of all constants, is too large. Returns the bytes of constants."""
    spans: dict[tuple[int, int, str, int], int] = {}
    for node in nodes:
        for output in node.outputs:
            try:
                require_size(types.get(output, UNKNOWN), limits)
            except LimitExceeded as error:
                raise error.at(node.where(graph.file)) from None
        if node.type == "Const" and not isinstance(node.op, UnknownOp):
            attributes = node.op.attributes
            size = types[node.outputs[0]].nbytes or 0
            spans[attributes["offset"], attributes["size"], attributes["element_type"].name, size] = size
    total = sum(spans.values())
    limits.require("peak_bytes", total, "the constants are too large")
    return total


def require_peak(graph: Graph, types: Mapping[Output, TensorType], constant_bytes: int, limits: Limits) -> None:
    """Raise LimitExceeded, with the layer, if the constants and the tensors alive at the same time are too large."""
    lifetimes = Lifetimes(graph, lambda o: types.get(o, UNKNOWN))
    try:
        limits.require(
            "peak_bytes", constant_bytes + lifetimes.peak, "the tensors alive when this layer runs are too large"
        )
    except LimitExceeded as error:
        raise error.at(lifetimes.at.where(graph.file)) if lifetimes.at is not None else error from None
