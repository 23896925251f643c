"""NMSRotated: non-maximum suppression of rotated boxes."""

from __future__ import annotations

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, i64
from irload.core.op import Op
from irload.core.tensor import Array, TensorType
from irload.ops.detection.boxes import ratio, suppress
from irload.ops.sort.nms import (
    check_boxes,
    check_scalar,
    most_rows,
    outputs_of,
    results_of,
    select,
    sorted_across,
)


class NMSRotated(Op, since=13):
    """NonMaxSuppression of boxes (center x, center y, width, height, angle in radians).

    Specification: NMSRotated-13. `clockwise` is the direction of the angle. A box is a candidate if its score exceeds
    `score_threshold`, and is dropped if its overlap with a better one exceeds `iou_threshold`. Outputs: rows (batch,
    class, box), f32 rows (batch, class, score), and the number of rows.
    """

    sort_result_descending = attr.boolean(default=True)
    output_type = attr.element_type(default=i64, among=INDEX)
    clockwise = attr.boolean(default=True)

    def infer(
        self,
        boxes: TensorType,
        scores: TensorType,
        max_output_boxes_per_class: TensorType,
        iou_threshold: TensorType,
        score_threshold: TensorType,
    ) -> tuple[TensorType, ...]:
        check_boxes(boxes, scores, 5)
        check_scalar("max_output_boxes_per_class", max_output_boxes_per_class, integer=True)
        check_scalar("iou_threshold", iou_threshold)
        check_scalar("score_threshold", score_threshold)
        return outputs_of(self.output_type, most_rows(boxes, scores, max_output_boxes_per_class))

    def compute(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array,
        iou_threshold: Array,
        score_threshold: Array,
    ) -> tuple[Array, ...]:
        turn = np.array([1, 1, 1, 1, 1 if self.clockwise else -1], boxes.dtype)
        limit, threshold, least = max_output_boxes_per_class.item(), iou_threshold.item(), score_threshold.item()
        selection = select(boxes * turn, scores, limit, threshold, least, overlap=rotated_iou, suppress=suppress)
        return results_of(self.output_type, sorted_across(selection) if self.sort_result_descending else selection)


def rotated_iou(box: Array, others: Array) -> Array:
    """Intersection over union of rotated boxes, of [5] or [m, 1, 5] with [n, 5]; 0 if either has no area."""
    if box.ndim > 1:
        return np.stack([rotated_iou(one, others) for one in box[:, 0]])
    area, areas = box[2] * box[3], others[:, 2] * others[:, 3]
    common = _common_area(_corners(box[None].astype(np.float64)), _corners(others.astype(np.float64)))
    return ratio(common.astype(box.dtype), area + areas - common.astype(box.dtype), (area > 0) & (areas > 0))


def _corners(boxes: Array) -> Array:
    """The corners of each box in order: [n, 4, 2]."""
    cos, sin = np.cos(boxes[:, 4]), np.sin(boxes[:, 4])
    along = np.stack([cos, sin], -1) * boxes[:, 2:3] / 2
    across = np.stack([-sin, cos], -1) * boxes[:, 3:4] / 2
    steps = [-along - across, along - across, along + across, across - along]
    return boxes[:, None, :2] + np.stack(steps, 1)


def _cross(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _common_area(one: Array, others: Array) -> Array:
    """The area of the intersection of one rectangle [1, 4, 2] with each of n [n, 4, 2].

    The intersection is convex. Its corners are the corners of each rectangle inside the other, and the crossings of
    their edges; sorted by angle around their mean they give the area.
    """
    points, valid = zip(_crossings(one, others), _within(one, others), _within(others, one), strict=True)
    points, valid = np.concatenate(points, 1), np.concatenate(valid, 1)
    count = np.maximum(valid.sum(1), 1)
    mean = (points * valid[..., None]).sum(1) / count[:, None]
    rays = np.where(valid[..., None], points - mean[:, None], 0)
    # Points that are not corners come last, as copies of the first corner, which do not change the area.
    angle = np.where(valid, np.arctan2(rays[..., 1], rays[..., 0]), np.inf)
    order = np.argsort(angle, 1)
    rays = np.take_along_axis(rays, order[..., None], 1)
    rays = np.where(np.take_along_axis(valid, order, 1)[..., None], rays, rays[:, :1])
    return np.abs(_cross(rays, np.roll(rays, -1, 1)).sum(1)) / 2


def _crossings(one: Array, others: Array) -> tuple[Array, Array]:
    """The crossings of the 4 × 4 pairs of edges: points [n, 16, 2], and a mask of existing ones."""
    start, edge = one[:, :, None], (np.roll(one, -1, 1) - one)[:, :, None]
    other_start, other_edge = others[:, None], (np.roll(others, -1, 1) - others)[:, None]
    slope = _cross(edge, other_edge)
    parallel = np.abs(slope) < 1e-14
    slope = np.where(parallel, 1, slope)
    at = _cross(other_start - start, other_edge) / slope
    other_at = _cross(other_start - start, edge) / slope
    exists = ~parallel & (at >= 0) & (at <= 1) & (other_at >= 0) & (other_at <= 1)
    return (start + edge * at[..., None]).reshape(-1, 16, 2), exists.reshape(-1, 16)


def _within(points: Array, rectangle: Array) -> tuple[Array, Array]:
    """The corners `points`, one row per rectangle, and a mask of the corners inside it."""
    (count,) = np.broadcast_shapes(len(points), len(rectangle))
    along, across = rectangle[:, 1] - rectangle[:, 0], rectangle[:, 3] - rectangle[:, 0]
    offset = points - rectangle[:, :1]
    x, y = (offset * along[:, None]).sum(-1), (offset * across[:, None]).sum(-1)
    inside = (x >= 0) & (y >= 0) & (x <= (along**2).sum(-1)[:, None]) & (y <= (across**2).sum(-1)[:, None])
    return np.broadcast_to(points, (count, 4, 2)), np.broadcast_to(inside, (count, 4))
