"""NonMaxSuppression, in all versions: the best boxes of each class, without overlapping ones."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, ElementType, bf16, f16, f32, i64
from irload.core.shape import ANY, Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch, TypeMismatch
from irload.ops.detection.boxes import IOU, Overlap, Suppress, Suppressing, from_center, ordered
from irload.ops.detection.candidates import Candidates, candidates_of
from irload.ops.ports import require_element

SelectedBoxes = tuple[Array, Array]
"""Indices [n, 3] of (batch, class, box) and scores [n]."""


def require_single(**ports: TensorType | None) -> None:
    """Raise TypeMismatch for a port other than f32, f16 and bf16, the types since version 5."""
    for name, tensor in ports.items():
        if tensor is not None:
            require_element(name, tensor, f32, f16, bf16)


def check_boxes(boxes: TensorType, scores: TensorType, size: int = 4) -> None:
    """Raise unless boxes [batches, n, size] and scores [batches, classes, n] match."""
    for name, tensor in (("boxes", boxes), ("scores", scores)):
        if not (tensor.element.is_float or tensor.element.is_dynamic):
            raise TypeMismatch(f"{name} must be of a floating-point type, found {tensor.element}")
        if tensor.rank not in (None, 3):
            raise ShapeMismatch(f"{name} must have 3 axes, found {tensor.shape}")
    if boxes.rank is not None and not boxes.shape[2].contains(size):
        raise ShapeMismatch(f"the last dimension of boxes must be {size}, found {boxes.shape}")
    if boxes.rank is None or scores.rank is None:
        return
    if boxes.shape[0].meet(scores.shape[0]) is None:
        raise ShapeMismatch(f"boxes and scores must be of one batch, found {boxes.shape} and {scores.shape}")
    if boxes.shape[1].meet(scores.shape[2]) is None:
        raise ShapeMismatch(f"scores must have one value per box, found {scores.shape} for boxes {boxes.shape}")


def check_scalar(name: str, tensor: TensorType | None, *, integer: bool = False, or_one: bool = True) -> None:
    """Raise unless the tensor is a scalar (or, `or_one`, one element) of a floating-point (or integer) type."""
    if tensor is None:
        return
    element = tensor.element
    if not element.is_dynamic and not (element.is_integer if integer else element.is_float):
        raise TypeMismatch(f"{name} must be of {'an integer' if integer else 'a floating-point'} type, found {element}")
    if tensor.rank not in (None, 0) and not (or_one and tensor.rank == 1 and tensor.shape[0].contains(1)):
        raise ShapeMismatch(f"{name} must be a scalar{' or one element' if or_one else ''}, found {tensor.shape}")


def most_rows(boxes: TensorType, scores: TensorType, limit: TensorType | None) -> Dim:
    """The range of the number of rows: at most min(boxes, limit) · batches · classes, as far as they are known."""
    if boxes.rank is None or scores.rank is None or limit is None or limit.ints is None:
        return ANY
    each, batches, classes = boxes.shape[1].hi, scores.shape[0].hi, scores.shape[1].hi
    if each is None or batches is None or classes is None:
        return ANY
    return Dim(0, min(each, max(limit.ints[0], 0)) * batches * classes)


def select(
    boxes: Array,
    scores: Array,
    limit: int,
    threshold: float,
    score_threshold: float,
    sigma: float = 0,
    overlap: Overlap = IOU,
    *,
    suppress: Suppress,
) -> SelectedBoxes:
    """The best boxes of every class of every batch, by class."""
    batches, classes, count = scores.shape
    rows = scores.reshape(batches * classes, count)
    ranked = candidates_of(rows, rows > score_threshold)
    batch, klass = np.divmod(ranked.group, max(classes, 1))
    candidates = boxes.reshape(-1, boxes.shape[-1]).take(batch * count + ranked.box, 0)
    if sigma > 0:
        chosen, kept_scores = _decayed(ranked, candidates, limit, score_threshold, sigma, overlap)
    else:
        chosen = suppress(candidates, threshold, limit, counts=ranked.counts, overlap=overlap)
        kept_scores = ranked.score[chosen]
    return np.stack([batch[chosen], klass[chosen], ranked.box[chosen]], -1), kept_scores


def _decayed(
    ranked: Candidates, boxes: Array, limit: int, score_threshold: float, sigma: float, overlap: Overlap
) -> tuple[Array, Array]:
    """Soft suppression of each group: the indices of selected candidates, and their scores."""
    chosen, scores = [np.zeros(0, np.int64)], [ranked.score[:0]]
    for group in ranked.slices():
        stay, kept = _decay(boxes[group], ranked.score[group], limit, score_threshold, sigma, overlap)
        chosen.append(group.start + stay)
        scores.append(kept)
    return np.concatenate(chosen), np.concatenate(scores)


def _decay(
    boxes: Array, scores: Array, limit: int, score_threshold: float, sigma: float, overlap: Overlap
) -> tuple[Array, Array]:
    """Soft suppression of one group: overlap with a better box multiplies the score by exp(−iou² / 2σ)."""
    scores = scores.copy()
    stay: list[int] = []
    values: list[float] = []
    while len(stay) < min(limit, len(boxes)):
        best = int(scores.argmax())
        if scores[best] <= score_threshold:
            break
        stay.append(best)
        values.append(scores[best])
        scores *= np.exp(-0.5 / sigma * overlap(boxes[best], boxes) ** 2).astype(scores.dtype)
        scores[best] = -np.inf
    return np.array(stay, np.int64), np.array(values, scores.dtype)


def sorted_across(selection: SelectedBoxes) -> SelectedBoxes:
    """The selection by descending score; of equal scores in the order of batch, class and box."""
    indices, scores = selection
    order = np.lexsort((indices[:, 2], indices[:, 1], indices[:, 0], -scores))
    return indices[order], scores[order]


def outputs_of(element: ElementType, rows: Dim) -> tuple[TensorType, ...]:
    """The types of selected indices, selected scores and the number of rows."""
    return TensorType(element, Shape(rows, 3)), TensorType(f32, Shape(rows, 3)), TensorType(element, Shape(1))


def results_of(element: ElementType, selection: SelectedBoxes) -> tuple[Array, ...]:
    """The three outputs of a selection."""
    indices, scores = selection
    rows = np.concatenate([indices[:, :2], scores[:, None]], -1).astype(np.float32)
    return indices.astype(element.dtype), rows, np.array([len(indices)], element.dtype)


class NmsBase(Suppressing):
    """Base of all versions of NonMaxSuppression."""

    box_encoding = attr.choice("corner", "center", default="corner")
    sort_result_descending = attr.boolean(default=True)

    def selected(self, boxes: Array, scores: Array, options: tuple[Array | None, ...]) -> SelectedBoxes:
        """The selection; `options` are the optional inputs in order."""
        limit, threshold, score_threshold, sigma = (*(0 if o is None else o.item() for o in options), 0, 0, 0, 0)[:4]
        corners = from_center(boxes) if self.box_encoding == "center" else ordered(boxes)
        numbers = float(threshold), float(score_threshold), float(sigma)
        selection = select(corners, scores, int(limit), *numbers, suppress=self.suppress)
        return sorted_across(selection) if self.sort_result_descending else selection


class NonMaxSuppression(NmsBase, since=1):
    """Selects boxes by descending score per class, without boxes that overlap a selected one.

    Specification: NonMaxSuppression-1. A box is a candidate if its score exceeds `score_threshold`, and is dropped if
    its intersection over union with a better one exceeds `iou_threshold`. Boxes are two opposite corners (corner) or
    (x, y, width, height) around their center (center). Output: rows (batch, class, box), at most
    `max_output_boxes_per_class` (default 0) per class. In the specification the output has a fixed number of rows,
    padded with −1; like OpenVINO, irload returns only the selected rows, and infers an upper bound.
    """

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType | None = None,
        iou_threshold: TensorType | None = None,
        score_threshold: TensorType | None = None,
    ) -> TensorType:
        check_boxes(boxes, scores)
        check_scalar("max_output_boxes_per_class", max_output_boxes_per_class, integer=True, or_one=False)
        check_scalar("iou_threshold", iou_threshold, or_one=False)
        check_scalar("score_threshold", score_threshold, or_one=False)
        rows = most_rows(boxes, scores, max_output_boxes_per_class)
        return TensorType(self.attributes.get("output_type", i64), Shape(rows, 3))

    def compute(self, boxes: Array, scores: Array, *options: Array) -> Array:
        indices, _ = self.selected(boxes, scores, options)
        return indices.astype(self.attributes.get("output_type", i64).dtype)


class NonMaxSuppression3(NonMaxSuppression, type="NonMaxSuppression", since=3):
    """NonMaxSuppression with a choice of the output's type. Specification: NonMaxSuppression-3."""

    output_type = attr.element_type(default=i64, among=INDEX)


class NonMaxSuppression4(NonMaxSuppression3, type="NonMaxSuppression", since=4):
    """NonMaxSuppression with an upper bound per batch and class. Specification: NonMaxSuppression-4."""


class NonMaxSuppression5(NmsBase, type="NonMaxSuppression", since=5):
    """NonMaxSuppression that also returns scores and the number of rows, and supports soft suppression.

    Specification: NonMaxSuppression-5. With `soft_nms_sigma` above zero, each selected box multiplies a box's score by
    exp(−iou² / 2σ), and the box is a candidate while its score exceeds `score_threshold`; `iou_threshold` then has no
    effect. Outputs: rows (batch, class, box), f32 rows (batch, class, score), and the number of rows.
    """

    output_type = attr.element_type(default=i64, among=INDEX)

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType | None = None,
        iou_threshold: TensorType | None = None,
        score_threshold: TensorType | None = None,
        soft_nms_sigma: TensorType | None = None,
    ) -> tuple[TensorType, ...]:
        require_single(
            boxes=boxes,
            scores=scores,
            iou_threshold=iou_threshold,
            score_threshold=score_threshold,
            soft_nms_sigma=soft_nms_sigma,
        )
        check_boxes(boxes, scores)
        check_scalar("max_output_boxes_per_class", max_output_boxes_per_class, integer=True)
        check_scalar("iou_threshold", iou_threshold)
        check_scalar("score_threshold", score_threshold)
        check_scalar("soft_nms_sigma", soft_nms_sigma)
        return outputs_of(self.output_type, most_rows(boxes, scores, max_output_boxes_per_class))

    def compute(self, boxes: Array, scores: Array, *options: Array) -> tuple[Array, ...]:
        return results_of(self.output_type, self.selected(boxes, scores, options))


class NonMaxSuppression9(NonMaxSuppression5, type="NonMaxSuppression", since=9):
    """NonMaxSuppression-5 with a specified upper bound on the rows (NonMaxSuppression-9)."""
