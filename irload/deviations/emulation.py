"""Emulation of OpenVINO's CPU plugin where it departs from the specification.

`emulate` replaces operations of a model by variants; the operations themselves are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irload.core.op import Op
from irload.core.tensor import Array
from irload.deviations.registry import met_by
from irload.errors import InputInvalid
from irload.graph import Graph, Node
from irload.model import Model, infer
from irload.ops.detection.boxes import from_center, iou, ordered
from irload.ops.sort.nms import SelectedBoxes, select, sorted_across

__all__ = ["TARGETS", "emulate"]

TARGETS = ("openvino-cpu",)


def emulate(model: Model, target: str = "openvino-cpu") -> list[Node]:
    """Replace operations so that the model computes like a runtime. Returns the changed layers.

    Compile the model with `optimize=False` afterwards, because plans follow the specification. The list of deviations
    marks the emulated ones. Raises InputInvalid for a target outside TARGETS.
    """
    if target not in TARGETS:
        raise InputInvalid(f"runtime '{target}' cannot be emulated; supported: {', '.join(TARGETS)}")
    changed = [node for graph in model.walk() for node in _replaced(graph)]
    if changed:
        infer(model)
    return changed


def _replaced(graph: Graph) -> list[Node]:
    changed: list[Node] = []
    for node in graph.nodes:
        inputs, outputs = [i.type for i in node.inputs], [o.type for o in node.outputs]
        if node.reachable and any(d.emulated for d in met_by(node.op, inputs, outputs)):
            op = _VARIANTS[node.type](node)
            if op is not None:
                node.op = op
                changed.append(node)
    return changed


def _with(op: Op, **attributes: Any) -> Op:
    """Return the operation with other attributes."""
    return type(op)(**{**op.attributes, **attributes})


def _overriding(op: Op, **methods: Callable[..., Any]) -> Op:
    """Return the operation with other methods. The class is not registered, so files cannot refer to it."""
    variant = object.__new__(type(type(op).__name__, (type(op),), methods))
    variant.__dict__.update(op.__dict__)
    return variant


# -- the variants ------------------------------------------------------------------------------------------------------


def _saturating(node: Node) -> Op:
    """Arithmetic of narrow integers saturates."""
    kind = type(node.op)

    def compute(self: Op, a: Array, b: Array) -> Array:
        limits = np.iinfo(a.dtype)
        wide = kind.compute(self, a.astype(np.int64), b.astype(np.int64))
        return np.clip(wide, limits.min, limits.max).astype(a.dtype)

    return _overriding(node.op, compute=compute)


def _absolute(node: Node) -> Op:
    """ReduceL1 and ReduceL2 without axes return absolute values."""
    return _overriding(node.op, compute=lambda self, x, axes: np.abs(x))


def _sign(node: Node) -> Op | None:
    """NormalizeL2 without axes normalises each element, unless the axes are constant and the rank is 2 to 4."""
    axes, rank = node.inputs[1], node.inputs[0].type.rank
    if axes.node.type == "Const" and rank in (2, 3, 4):
        return None

    def compute(self: Any, data: Array, axes: Array) -> Array:
        square, eps = np.square(data), data.dtype.type(self.eps)
        return data / np.sqrt(square + eps if self.eps_mode == "add" else np.maximum(square, eps))

    return _overriding(node.op, compute=compute)


def _truncating(node: Node) -> Op:
    """Quotients of integers are truncated."""
    return _with(node.op, m_pythondiv=False)


def _whole_bias(node: Node) -> Op:
    """LRN's bias is truncated to an integer."""
    return _with(node.op, bias=float(int(node.op.attributes["bias"])))


def _sorted_by_score(node: Node) -> Op:
    """MatrixNms sorts the rows of an image by score even if sort_result_type is classid."""
    return _with(node.op, sort_result_type="score")


def _whole_sequences(node: Node) -> Op:
    """Sequences of dynamic models have the length of the data, independently of sequence_lengths."""
    kind, port = type(node.op), 3 if node.type == "LSTMSequence" else 2

    def compute(self: Op, *inputs: Array) -> Any:
        lengths = np.full_like(inputs[port], inputs[0].shape[1])
        return kind.compute(self, *inputs[:port], lengths, *inputs[port + 1 :])

    return _overriding(node.op, compute=compute)


def _touching_suppressed(node: Node) -> Op:
    """NonMaxSuppression also drops boxes whose overlap with a better box equals the threshold."""

    def selected(self: Any, boxes: Array, scores: Array, options: tuple[Array | None, ...]) -> SelectedBoxes:
        limit, threshold, score_threshold, sigma = (*(0 if o is None else o.item() for o in options), 0, 0, 0, 0)[:4]
        corners = from_center(boxes) if self.box_encoding == "center" else ordered(boxes)

        def overlap(box: Array, others: Array) -> Array:
            overlaps = iou(box, others)
            return overlaps if sigma > 0 else np.where(overlaps >= threshold, np.inf, overlaps).astype(overlaps.dtype)

        bounds = int(limit), float(threshold), float(score_threshold), float(sigma)
        selection = select(corners, scores, *bounds, overlap=overlap, suppress=self.suppress)
        return sorted_across(selection) if self.sort_result_descending else selection

    return _overriding(node.op, selected=selected)


_VARIANTS: dict[str, Callable[[Node], Op | None]] = {
    "Add": _saturating,
    "Subtract": _saturating,
    "Multiply": _saturating,
    "SquaredDifference": _saturating,
    "BitwiseLeftShift": lambda node: None,
    "ReduceL1": _absolute,
    "ReduceL2": _absolute,
    "NormalizeL2": _sign,
    "Divide": _truncating,
    "LRN": _whole_bias,
    "MatrixNms": _sorted_by_score,
    "RNNSequence": _whole_sequences,
    "GRUSequence": _whole_sequences,
    "LSTMSequence": _whole_sequences,
    "NonMaxSuppression": _touching_suppressed,
}
