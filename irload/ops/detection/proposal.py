"""Proposal: regions of interest from the scores and deltas of anchors on a grid."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import ElementType
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.detection.boxes import Iou, Suppressing, sizes
from irload.ops.detection.candidates import by_score
from irload.ops.detection.decode import clip, refine
from irload.ops.detection.ports import agreed, dim_of, follow_floats, require_shape
from irload.ops.detection.sampling import round_away
from irload.ops.ports import require_rank

F = np.float32


class Proposal(Suppressing, since=1):
    """The best `post_nms_topn` regions of each image after non-maximum suppression.

    Specification: Proposal-1. Inputs: class_probs [batches, 2 · anchors, height, width], of which the second half
    scores the foreground; bbox_deltas [batches, 4 · anchors, height, width]; image_shape (height, width, scale) or
    (height, width, scale of height, scale of width). There is one anchor per pair of `ratio` and `scale`. Regions
    smaller than `min_size` times the scale score 0. Output: rows (batch, x1, y1, x2, y2), followed by a row that begins
    with −1, then zeros. `framework` tensorflow uses coordinates without the pixel offset, and y before x.
    """

    base_size = attr.integer(default=0, rule=attr.positive, spec_required=True)
    pre_nms_topn = attr.integer(default=0, rule=attr.positive, spec_required=True)
    post_nms_topn = attr.integer(default=0, rule=attr.positive, spec_required=True)
    nms_thresh = attr.number(default=0.0, spec_required=True)
    feat_stride = attr.integer(default=1, rule=attr.positive, spec_required=True)
    min_size = attr.integer(default=1, rule=attr.non_negative, spec_required=True)
    ratio = attr.numbers(default=(), rule=attr.positive, spec_required=True)
    scale = attr.numbers(default=(), rule=attr.positive, spec_required=True)
    clip_before_nms = attr.boolean(default=True)
    clip_after_nms = attr.boolean(default=False)
    normalize = attr.boolean(default=False)
    box_size_scale = attr.number(default=1.0)
    box_coordinate_scale = attr.number(default=1.0)
    framework = attr.text(default="")

    def infer(self, class_probs: TensorType, bbox_deltas: TensorType, image_shape: TensorType) -> TensorType:
        return TensorType(*self._rows(class_probs, bbox_deltas, image_shape))

    def _rows(
        self, class_probs: TensorType, bbox_deltas: TensorType, image_shape: TensorType
    ) -> tuple[ElementType, Shape]:
        if self.framework not in ("", "tensorflow"):
            raise AttributeInvalid(f"attribute framework must be tensorflow or empty, found '{self.framework}'")
        element = follow_floats(class_probs=class_probs, bbox_deltas=bbox_deltas, image_shape=image_shape)
        require_rank("class_probs", class_probs, 4)
        require_rank("bbox_deltas", bbox_deltas, 4)
        require_rank("image_shape", image_shape, 1)
        length = dim_of(image_shape, 0)
        if not (length.contains(3) or length.contains(4)):
            raise ShapeMismatch(f"image_shape must hold 3 or 4 values, found {image_shape.shape}")
        anchors = Dim.of(len(self.ratio) * len(self.scale))
        require_shape("class_probs", class_probs, None, anchors * Dim.of(2), None, None)
        require_shape("bbox_deltas", bbox_deltas, None, anchors * Dim.of(4), None, None)
        for axis, label in ((2, "heights"), (3, "widths")):
            agreed(f"the {label} of class_probs and bbox_deltas", dim_of(class_probs, axis), dim_of(bbox_deltas, axis))
        batch = agreed("the batches of class_probs and bbox_deltas", dim_of(class_probs, 0), dim_of(bbox_deltas, 0))
        return element, Shape(batch * Dim.of(self.post_nms_topn), 5)

    def compute(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> Array:
        return self._proposals(class_probs, bbox_deltas, image_shape)[0]

    def _proposals(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        """Rows [batches · post_nms_topn, 5] and their scores."""
        batches, _, height, width = class_probs.shape
        anchors = self._anchors().reshape(-1, 4)
        count = len(anchors)
        rows = np.zeros((batches, self.post_nms_topn, 5), class_probs.dtype)
        best = np.zeros((batches, self.post_nms_topn), class_probs.dtype)
        for batch in range(batches):
            # From [anchor, …, row, column] to one list in the order of row, column, anchor.
            scores = class_probs[batch, count:].transpose(1, 2, 0).ravel()
            deltas = bbox_deltas[batch].reshape(count, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)
            boxes, scores = self._candidates(anchors, scores, deltas, (height, width), image_shape)
            order = by_score(scores)[: self.pre_nms_topn]
            overlap = Iou(self._offset)
            stay = order[self.suppress(boxes[order], self.nms_thresh, self.post_nms_topn, overlap=overlap)]
            selected = len(stay)
            rows[batch, :selected, 0] = batch
            rows[batch, :selected, 1:] = self._finished(boxes[stay], image_shape)
            rows[batch, selected : selected + 1, 0] = -1
            best[batch, :selected] = scores[stay]
        return rows.reshape(-1, 5), best.ravel()

    @property
    def _offset(self) -> float:
        return 0 if self.framework == "tensorflow" else 1

    def _anchors(self) -> Array:
        """The corners of the anchors around a cell: [ratios, scales, 4]."""
        base, offset = F(self.base_size), F(self._offset)
        ratio, scale = np.array(self.ratio, F)[:, None], np.array(self.scale, F)
        width = np.sqrt(base * base / ratio)
        width = width if self.framework == "tensorflow" else round_away(width)
        height = width * ratio
        height = height if self.framework == "tensorflow" else round_away(height)
        half = np.stack([width * scale - offset, height * scale - offset], -1) / 2
        center = (base - offset) / 2 - (base / 2 if self.framework == "tensorflow" else F(0))
        return np.concatenate([center - half, center + half], -1)

    def _candidates(
        self, anchors: Array, scores: Array, deltas: Array, grid: tuple[int, int], image: Array
    ) -> tuple[Array, Array]:
        tensorflow = self.framework == "tensorflow"
        y, x = np.indices(grid).astype(F) * self.feat_stride
        x, y = (y, x) if tensorflow else (x, y)
        boxes = (np.stack([x, y, x, y], -1)[:, :, None] + anchors).reshape(-1, 4).astype(deltas.dtype)
        height, width = self._limits(image)
        if tensorflow:
            boxes = clip(boxes, height, width)
        units = np.array([self.box_coordinate_scale] * 2 + [self.box_size_scale] * 2, deltas.dtype)
        boxes = refine(boxes, deltas / units, self._offset, inset=False)
        if self.clip_before_nms:
            boxes = clip(boxes, height - self._offset, width - self._offset)
        least = self.min_size * np.array([image[-1] if len(image) == 4 else image[2], image[2]], boxes.dtype)
        return boxes, scores * (sizes(boxes, self._offset) >= least).all(-1)

    def _limits(self, image: Array) -> tuple[float, float]:
        """The limits of the second and of the first coordinate: height and width, or the reverse if y precedes x."""
        height, width = image[:2].tolist()
        return (width, height) if self.framework == "tensorflow" else (height, width)

    def _finished(self, boxes: Array, image: Array) -> Array:
        height, width = self._limits(image)
        if self.clip_after_nms:
            boxes = clip(boxes, height, width)
        return boxes / np.array([width, height, width, height], boxes.dtype) if self.normalize else boxes


class Proposal4(Proposal, type="Proposal", since=4):
    """Proposal that also returns the scores of the regions. Specification: Proposal-4."""

    def infer(
        self, class_probs: TensorType, bbox_deltas: TensorType, image_shape: TensorType
    ) -> tuple[TensorType, TensorType]:
        element, rows = self._rows(class_probs, bbox_deltas, image_shape)
        return TensorType(element, rows), TensorType(element, Shape(rows[0]))

    def compute(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        return self._proposals(class_probs, bbox_deltas, image_shape)
