"""Regions of interest from given anchors: GenerateProposals and its predecessor for one image, of Detectron."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.detection.boxes import Iou, Suppressing, sizes
from irload.ops.detection.candidates import by_score
from irload.ops.detection.decode import WIDEST, clip, refine
from irload.ops.detection.ports import agreed, dim_of, require_floats, require_shape
from irload.ops.ports import require_rank


def by_cell(scores: Array, deltas: Array) -> tuple[Array, Array]:
    """Scores [anchors, h, w] and deltas [4 · anchors, h, w] as lists in the order of row, column, anchor."""
    count = len(scores)
    deltas = deltas.reshape(count, 4, *scores.shape[1:])
    return scores.transpose(1, 2, 0).ravel(), deltas.transpose(2, 3, 0, 1).reshape(-1, 4)


class ExperimentalDetectronGenerateProposalsSingleImage(Suppressing, since=6):
    """The best `post_nms_count` regions of one image after non-maximum suppression.

    Specification: ExperimentalDetectronGenerateProposalsSingleImage-6. Inputs: im_info (height, width, scale), anchors
    [h · w · count, 4], deltas [4 · count, h, w], scores [count, h, w]. Regions smaller than `min_size` score 0.
    Outputs: regions [post_nms_count, 4] and their scores, padded with zeros.
    """

    min_size = attr.number(default=0.0, spec_required=True)
    nms_threshold = attr.number(default=0.0, spec_required=True)
    post_nms_count = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    pre_nms_count = attr.integer(default=0, rule=attr.non_negative, spec_required=True)

    def infer(
        self, im_info: TensorType, anchors: TensorType, deltas: TensorType, scores: TensorType
    ) -> tuple[TensorType, TensorType]:
        element = require_floats(im_info=im_info, anchors=anchors, deltas=deltas, scores=scores)
        count, height, width = (dim_of(scores, axis) for axis in range(3))
        require_rank("scores", scores, 3)
        require_shape("im_info", im_info, 3)
        require_shape("anchors", anchors, height * width * count, 4)
        require_shape("deltas", deltas, count * Dim.of(4), height, width)
        rows = self.post_nms_count
        return TensorType(element, Shape(rows, 4)), TensorType(element, Shape(rows))

    def compute(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        values, moves = by_cell(scores, deltas)
        height, width = im_info[:2].tolist()
        boxes = clip(refine(anchors, moves, 1, WIDEST), height - 1, width - 1)
        values = values * (sizes(boxes, 1) >= self.min_size).all(-1)
        order = by_score(values)[: self.pre_nms_count]
        stay = order[self.suppress(boxes[order], self.nms_threshold, self.post_nms_count)]
        rois = np.zeros((self.post_nms_count, 4), boxes.dtype)
        best = np.zeros(self.post_nms_count, boxes.dtype)
        rois[: len(stay)], best[: len(stay)] = boxes[stay], values[stay]
        return rois, best


class GenerateProposals(Suppressing, since=9):
    """The best `post_nms_count` regions of each image after non-maximum suppression.

    Specification: GenerateProposals-9. Inputs: im_info [batches, 3 or 4] of (height, width, scale or scales), anchors
    [h, w, count, 4], deltas [batches, 4 · count, h, w], scores [batches, count, h, w]. Regions smaller than `min_size`
    times the scale are dropped. With `normalized` false coordinates count whole pixels. Outputs: regions [n, 4], their
    scores [n], and the number of regions per image.
    """

    min_size = attr.number(default=0.0, spec_required=True)
    nms_threshold = attr.number(default=0.0, spec_required=True)
    post_nms_count = attr.integer(rule=attr.positive)
    pre_nms_count = attr.integer(rule=attr.positive)
    normalized = attr.boolean(default=True)
    nms_eta = attr.number(default=1.0, rule=lambda v: None if v == 1 else "must be 1")
    roi_num_type = attr.element_type(default=i64, among=INDEX)

    def infer(
        self, im_info: TensorType, anchors: TensorType, deltas: TensorType, scores: TensorType
    ) -> tuple[TensorType, ...]:
        element = require_floats(im_info=im_info, anchors=anchors, deltas=deltas, scores=scores)
        require_rank("im_info", im_info, 2)
        if not (dim_of(im_info, 1).contains(3) or dim_of(im_info, 1).contains(4)):
            raise ShapeMismatch(f"im_info must hold 3 or 4 values per image, found {im_info.shape}")
        batches, count, height, width = (dim_of(scores, axis) for axis in range(4))
        require_rank("scores", scores, 4)
        require_shape("anchors", anchors, height, width, count, 4)
        require_shape("deltas", deltas, None, count * Dim.of(4), height, width)
        batches = agreed("the batches of im_info, deltas and scores", dim_of(im_info, 0), dim_of(deltas, 0), batches)
        rows = Dim(0, (batches * Dim.of(self.post_nms_count)).hi)
        return (
            TensorType(element, Shape(rows, 4)),
            TensorType(element, Shape(rows)),
            TensorType(self.roi_num_type, Shape(batches)),
        )

    def compute(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, ...]:
        flat = anchors.reshape(-1, 4)
        parts = [self._image(info, flat, *by_cell(s, d)) for info, s, d in zip(im_info, scores, deltas, strict=True)]
        empty = [(flat[:0], scores[:0].ravel())]
        rois, best = (np.concatenate(column) for column in zip(*(empty + parts), strict=True))
        return rois, best, np.array([len(part[0]) for part in parts], self.roi_num_type.dtype)

    def _image(self, info: Array, anchors: Array, scores: Array, deltas: Array) -> tuple[Array, Array]:
        offset = 0 if self.normalized else 1
        height, width, *scale = info.tolist()
        boxes = clip(refine(anchors, deltas, offset, WIDEST), height - offset, width - offset)
        order = by_score(scores)[: self.pre_nms_count]
        least = np.array([scale[-1], scale[0]], boxes.dtype) * boxes.dtype.type(self.min_size)
        order = order[(sizes(boxes[order], offset) >= least).all(-1)]
        numbers = self.nms_threshold, self.post_nms_count
        stay = self.suppress(boxes[order], *numbers, eta=self.nms_eta, overlap=Iou(offset))
        return boxes[order[stay]], scores[order[stay]]
