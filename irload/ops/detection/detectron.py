"""ExperimentalDetectronDetectionOutput: the boxes of the second stage of Detectron."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import i32
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.ops.detection.boxes import Iou, Suppressing
from irload.ops.detection.candidates import candidates_of
from irload.ops.detection.decode import refine
from irload.ops.detection.ports import agreed, dim_of, require_floats, require_shape


class ExperimentalDetectronDetectionOutput(Suppressing, since=6):
    """Refines regions by the deltas of each class and selects the best by suppression per class.

    Specification: ExperimentalDetectronDetectionOutput-6. Inputs: rois [n, 4], deltas [n, 4 · classes], scores [n,
    classes], im_info [1, 3] (height, width, scale). Class 0 is the background. Coordinates count whole pixels. Outputs:
    boxes [max_detections_per_image, 4], classes (i32) and scores, padded with zeros; sorted by class, or by score if
    more than the maximum were selected. Boxes are clamped at 0, not at the size of the image, as in OpenVINO.
    """

    score_threshold = attr.number(default=0.0, spec_required=True)
    nms_threshold = attr.number(default=0.0, spec_required=True)
    max_delta_log_wh = attr.number(default=0.0, spec_required=True)
    num_classes = attr.integer(rule=attr.positive)
    post_nms_count = attr.integer(default=0, rule=attr.at_least(-1), spec_required=True)
    max_detections_per_image = attr.integer(default=0, rule=attr.non_negative, spec_required=True)
    class_agnostic_box_regression = attr.boolean(default=False)
    deltas_weights = attr.numbers(default=(), rule=lambda v: None if len(v) == 4 else "must be four values")

    def infer(
        self, rois: TensorType, deltas: TensorType, scores: TensorType, im_info: TensorType
    ) -> tuple[TensorType, ...]:
        element = require_floats(rois=rois, deltas=deltas, scores=scores, im_info=im_info)
        require_shape("rois", rois, None, 4)
        require_shape("deltas", deltas, None, 4 * self.num_classes)
        require_shape("scores", scores, None, self.num_classes)
        require_shape("im_info", im_info, 1, 3)
        agreed("the numbers of rois, deltas and scores", dim_of(rois, 0), dim_of(deltas, 0), dim_of(scores, 0))
        rows = self.max_detections_per_image
        return TensorType(element, Shape(rows, 4)), TensorType(i32, Shape(rows)), TensorType(element, Shape(rows))

    def compute(self, rois: Array, deltas: Array, scores: Array, im_info: Array) -> tuple[Array, ...]:
        weights = np.array(self.deltas_weights or (1, 1, 1, 1), deltas.dtype)
        moves = deltas.reshape(len(rois), self.num_classes, 4) / weights
        boxes = np.maximum(refine(rois[:, None], moves, 1, self.max_delta_log_wh), 0)
        sound = (rois[:, 2:] > rois[:, :2]).all(-1)
        limit = None if self.post_nms_count < 0 else self.post_nms_count
        by_class = scores.T
        mask = sound & (by_class > self.score_threshold)
        mask[0] = False
        ranked = candidates_of(by_class, mask)
        candidates = boxes[ranked.box, ranked.group]
        stay = self.suppress(candidates, self.nms_threshold, limit, counts=ranked.counts, overlap=Iou(1))
        roi, klass = ranked.box[stay], ranked.group[stay]
        if len(roi) > self.max_detections_per_image:
            best = np.lexsort((roi, -scores[roi, klass]))[: self.max_detections_per_image]
            roi, klass = roi[best], klass[best]
        rows = self.max_detections_per_image
        outputs = np.zeros((rows, 4), boxes.dtype), np.zeros(rows, np.int32), np.zeros(rows, scores.dtype)
        for target, values in zip(outputs, (boxes[roi, klass], klass, scores[roi, klass]), strict=True):
            target[: len(roi)] = values
        return outputs
