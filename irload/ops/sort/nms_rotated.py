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

TOGETHER = 1024
"""Maximum number of pairs of boxes whose intersections are computed in one step."""


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
    """Intersection over union of rotated boxes that broadcast; 0 if either has no area."""
    one, other = _corners(box.astype(np.float64)), _corners(others.astype(np.float64))
    near = _near(one, other)
    common, pairs = np.zeros(near.shape, box.dtype), np.flatnonzero(near)
    for start in range(0, len(pairs), TOGETHER):
        some = np.unravel_index(pairs[start : start + TOGETHER], near.shape)
        both = (np.broadcast_to(corners, (*near.shape, 4, 2))[some] for corners in (one, other))
        common[some] = _common_area(*(np.moveaxis(corners, 0, -1).copy() for corners in both))
    area, areas = (boxes[..., 2] * boxes[..., 3] for boxes in (box, others))
    return ratio(common, area + areas - common, (area > 0) & (areas > 0))


def _corners(boxes: Array) -> Array:
    """The corners of each box in order: [..., 4, 2]."""
    cos, sin = np.cos(boxes[..., 4]), np.sin(boxes[..., 4])
    along = np.stack([cos, sin], -1) * boxes[..., 2:3] / 2
    across = np.stack([-sin, cos], -1) * boxes[..., 3:4] / 2
    steps = [-along - across, along - across, along + across, across - along]
    return boxes[..., None, :2] + np.stack(steps, -2)


def _near(one: Array, other: Array) -> Array:
    """A mask of the pairs of rectangles whose upright bounding boxes touch; the others do not intersect."""
    low, high, other_low, other_high = one.min(-2), one.max(-2), other.min(-2), other.max(-2)
    x, y = ((low[..., k] <= other_high[..., k]) & (other_low[..., k] <= high[..., k]) for k in (0, 1))
    return x & y


def _cross(a: Array, b: Array) -> Array:
    return a[..., 0, :] * b[..., 1, :] - a[..., 1, :] * b[..., 0, :]


def _common_area(one: Array, other: Array) -> Array:
    """The areas of the intersections of n pairs of rectangles [4, 2, n].

    An intersection is convex. Its corners are the corners of each rectangle inside the other, and the crossings of
    their edges; sorted by angle around their mean they give the area.
    """
    crossings, crossed = _crossings(one, other)
    points = np.concatenate([crossings, one, other])
    valid = np.concatenate([crossed, _within(one, other), _within(other, one)])
    count = valid.sum(0)
    mean = (points * valid[:, None]).sum(0) / np.maximum(count, 1)
    rays = np.where(valid[:, None], points - mean, 0)
    # Points that are not corners come last, as copies of the first corner, which do not change the area.
    angle = np.where(valid, np.arctan2(rays[:, 1], rays[:, 0]), np.inf)
    rays = np.take_along_axis(rays, np.argsort(angle, 0)[:, None], 0)
    rays = np.where(np.arange(len(rays))[:, None, None] < count, rays, rays[:1])
    return np.abs(_cross(rays, np.roll(rays, -1, 0)).sum(0)) / 2


def _crossings(one: Array, other: Array) -> tuple[Array, Array]:
    """The crossings of the 4 × 4 pairs of edges: points [16, 2, n], and a mask of existing ones [16, n]."""
    start, edge = one[:, None], (np.roll(one, -1, 0) - one)[:, None]
    other_edge, offset = np.roll(other, -1, 0) - other, other - start
    slope = _cross(edge, other_edge)
    parallel = np.abs(slope) < 1e-14
    slope = np.where(parallel, 1, slope)
    at, other_at = _cross(offset, other_edge) / slope, _cross(offset, edge) / slope
    exists = ~parallel & (at >= 0) & (at <= 1) & (other_at >= 0) & (other_at <= 1)
    return (start + edge * at[:, :, None]).reshape(16, 2, -1), exists.reshape(16, -1)


def _within(points: Array, rectangle: Array) -> Array:
    """A mask of the points [4, 2, n] inside the rectangles [4, 2, n]."""
    along, across = rectangle[1] - rectangle[0], rectangle[3] - rectangle[0]
    offset = points - rectangle[0]
    x, y = (offset * along).sum(1), (offset * across).sum(1)
    return (x >= 0) & (y >= 0) & (x <= (along**2).sum(0)) & (y <= (across**2).sum(0))
