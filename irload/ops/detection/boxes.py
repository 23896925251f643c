"""Boxes in detection and suppression: areas, overlap, greedy selection.

The last axis of an array is a box: (x1, y1, x2, y2) or (y1, x1, y2, x2); all formulas are symmetric in x and y.
`offset` is added to every width and height: 1 if coordinates count whole pixels, 0 if they are normalized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from irload.core.op import Op
from irload.core.tensor import Array
from irload.record import record

Overlap = Callable[[Array, Array], Array]
"""Takes boxes that broadcast against each other; returns the intersection over union of each pair."""

TOGETHER, PAIRS = 64, 1 << 20
"""Maximum number of boxes that suppression compares with others in one step, and of pairs of boxes per step."""
AHEAD = 1024
"""Number of boxes that suppression examines at a time, until enough boxes are selected."""


def sizes(boxes: Array, offset: float = 0) -> Array:
    """Width and height of each box, in the order of its coordinates: [..., 2]."""
    return boxes[..., 2:] - boxes[..., :2] + boxes.dtype.type(offset)


def iou(box: Array, others: Array, offset: float = 0, *, bridge: bool = False) -> Array:
    """Intersection over union of boxes that broadcast; 0 if either has no area or they do not touch.

    With `bridge`, boxes less than `offset` apart overlap too.
    """
    a, b = sizes(box, offset).prod(-1), sizes(others, offset).prod(-1)
    common: Array | None = None
    for k in (0, 1):  # one coordinate at a time: NumPy is slow along an axis of length 2
        low, high = np.maximum(box[..., k], others[..., k]), np.minimum(box[..., k + 2], others[..., k + 2])
        length = np.maximum(high - low + box.dtype.type(offset), 0)
        length = length if bridge else np.where(high >= low, length, box.dtype.type(0))
        common = length if common is None else common * length
    assert common is not None
    return ratio(common, a + b - common, (a > 0) & (b > 0))


@record()
class Iou:
    """`iou` with fixed options."""

    offset: float = 0
    bridge: bool = False

    def __call__(self, box: Array, others: Array) -> Array:
        return iou(box, others, self.offset, bridge=self.bridge)


def ratio(a: Array, b: Array, where: Array) -> Array:
    """a / b where `where` is true, 0 elsewhere."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, where.shape), a.dtype), where=where)


def ordered(corners: Array) -> Array:
    """Boxes given by any two opposite corners, as lower and upper corner."""
    result = np.empty_like(corners)
    for k in (0, 1):  # as in `iou`
        np.minimum(corners[..., k], corners[..., k + 2], out=result[..., k])
        np.maximum(corners[..., k], corners[..., k + 2], out=result[..., k + 2])
    return result


def from_center(boxes: Array) -> Array:
    """Corners of boxes given as (center x, center y, width, height)."""
    result = np.empty_like(boxes)
    for k in (0, 1):  # as in `iou`
        center, half = boxes[..., k], boxes[..., k + 2] / 2
        np.subtract(center, half, out=result[..., k])
        np.add(center, half, out=result[..., k + 2])
    return result


IOU = Iou()
"""The overlap of boxes given by corners."""


def suppress(
    boxes: Array,
    threshold: float,
    limit: int | None = None,
    *,
    counts: Array | None = None,
    eta: float = 1,
    overlap: Overlap = IOU,
) -> Array:
    """Greedy suppression: the indices of the selected boxes, for boxes in descending order of score.

    A box is selected if its overlap with every box selected before is at most `threshold`; at most `limit` are
    selected. With `eta` below 1 the threshold is multiplied by it after each selection, until it is 0.5 or less.
    `counts`: the numbers of boxes of consecutive groups, each of which is suppressed separately.
    """
    if counts is None:
        return _selected(boxes, threshold, limit, eta, overlap)
    ends = np.cumsum(counts)
    groups = zip((ends - counts).tolist(), ends.tolist(), strict=True)
    parts = [start + _selected(boxes[start:end], threshold, limit, eta, overlap) for start, end in groups]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _selected(boxes: Array, threshold: float, limit: int | None, eta: float, overlap: Overlap) -> Array:
    """The selected boxes of one group."""
    limit = len(boxes) if limit is None else limit
    worst = np.zeros(len(boxes), boxes.dtype)  # the greatest overlap of each box with a selected one
    stay = np.zeros(0, np.int64)
    for start in range(0, len(boxes), AHEAD):
        if len(stay) >= limit:
            break
        rest = np.arange(start, min(start + AHEAD, len(boxes)))
        for first in range(0, len(stay), TOGETHER):
            _compare(boxes, stay[first : first + TOGETHER], rest, worst, overlap)
        rest = rest[worst[rest] <= threshold]
        while rest.size and len(stay) < limit:
            count = max(1, min(TOGETHER, PAIRS // len(rest)))
            block, rest = rest[:count], rest[count:]
            pairs, among = overlap(boxes[block][:, None], boxes[block]), worst[block]
            chosen: list[int] = []
            for k in range(len(block)):
                if among[k] <= threshold and len(stay) + len(chosen) < limit:
                    chosen.append(k)
                    np.maximum(among, pairs[k], out=among)
                    if eta < 1 and threshold > 0.5:
                        threshold *= eta
            stay = np.concatenate([stay, block[chosen]])
            if rest.size and chosen:
                _compare(boxes, block[chosen], rest, worst, overlap)
            rest = rest[worst[rest] <= threshold]
    return stay


def _compare(boxes: Array, chosen: Array, rest: Array, worst: Array, overlap: Overlap) -> None:
    """Update `worst` with the overlaps between the rest and newly selected boxes."""
    worst[rest] = np.maximum(worst[rest], overlap(boxes[chosen][:, None], boxes[rest]).max(0))


class Suppress(Protocol):
    """The signature of `suppress`."""

    def __call__(
        self,
        boxes: Array,
        threshold: float,
        limit: int | None = None,
        *,
        counts: Array | None = None,
        eta: float = 1,
        overlap: Overlap = IOU,
    ) -> Array: ...


class Suppressing(Op):
    """An operation that suppresses boxes by a function that the executor may replace."""

    replaceable = True
    suppress: ClassVar[Suppress] = staticmethod(suppress)
