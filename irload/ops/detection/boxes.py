"""Arithmetic on boxes that detection and suppression share: areas, overlap, greedy selection.

Boxes are the last axis of an array: (x1, y1, x2, y2), or (y1, x1, y2, x2), as no formula here tells x from y. `offset`
is what is added to every width and height: 1 where coordinates count whole pixels, 0 where they are normalized.
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
"""How many boxes suppression compares with others at once, and in how many pairs."""
MANY = 600
"""How many scores are sorted as integers: 24,000 of them in a quarter of the time."""
AHEAD = 1024
"""How many boxes suppression looks at before it knows whether it needs more."""


def sizes(boxes: Array, offset: float = 0) -> Array:
    """Width and height of each box, in the order of its coordinates: [..., 2]."""
    return boxes[..., 2:] - boxes[..., :2] + boxes.dtype.type(offset)


def iou(box: Array, others: Array, offset: float = 0, *, bridge: bool = False) -> Array:
    """Intersection over union of boxes that broadcast; 0 where either has no area or they do not touch.

    With `bridge`, boxes less than `offset` apart overlap too.
    """
    a, b = sizes(box, offset).prod(-1), sizes(others, offset).prod(-1)
    common: Array | None = None
    for k in (0, 1):  # each coordinate by itself: NumPy is slow along an axis of 2
        low, high = np.maximum(box[..., k], others[..., k]), np.minimum(box[..., k + 2], others[..., k + 2])
        length = np.maximum(high - low + box.dtype.type(offset), 0)
        length = length if bridge else np.where(high >= low, length, box.dtype.type(0))
        common = length if common is None else common * length
    assert common is not None
    return ratio(common, a + b - common, (a > 0) & (b > 0))


@record()
class Iou:
    """`iou` of boxes that are compared in one way."""

    offset: float = 0
    bridge: bool = False

    def __call__(self, box: Array, others: Array) -> Array:
        return iou(box, others, self.offset, bridge=self.bridge)


def ratio(a: Array, b: Array, where: Array) -> Array:
    """A / b where `where` holds, 0 elsewhere."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, where.shape), a.dtype), where=where)


def ordered(corners: Array) -> Array:
    """Boxes given by any two opposite corners, as lower corner and upper corner."""
    made = np.empty_like(corners)
    for k in (0, 1):  # as in `iou`
        np.minimum(corners[..., k], corners[..., k + 2], out=made[..., k])
        np.maximum(corners[..., k], corners[..., k + 2], out=made[..., k + 2])
    return made


def from_center(boxes: Array) -> Array:
    """Corners of boxes given as (center x, center y, width, height)."""
    center, half = boxes[..., :2], boxes[..., 2:] / 2
    return np.concatenate([center - half, center + half], -1)


def by_score(scores: Array) -> Array:
    """The indices of `scores` from the highest down, NaN last; of equal ones the lower index comes first."""
    if scores.dtype != np.float32 or scores.size < MANY:
        return np.argsort(-scores, kind="stable")
    # Scores as integers in the same order, each with its index behind it: numbers that all differ sort faster.
    falling = np.where(np.isnan(scores), np.float32(np.nan), -scores + np.float32(0))
    bits = falling.view(np.int32).astype(np.int64)
    keys = (bits ^ (bits >> 63 & 0x7FFFFFFF)) << 32 | np.arange(scores.size)
    keys.sort()
    return keys & 0xFFFFFFFF


IOU = Iou()
"""That of boxes between their corners."""


def suppress(
    boxes: Array,
    threshold: float,
    limit: int | None = None,
    *,
    eta: float = 1,
    overlap: Overlap = IOU,
) -> Array:
    """Greedy suppression: the indices of the boxes that stay, of boxes given best first.

    A box stays when it overlaps none that stayed before it by more than `threshold`. At most `limit` stay. With `eta`
    below 1 the threshold shrinks by that factor after each box that stays, until it is 0.5 or less.
    """
    limit = len(boxes) if limit is None else limit
    worst = np.zeros(len(boxes), boxes.dtype)  # the greatest overlap of each box with one that stays
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
    """Note in `worst` how much the rest overlaps boxes that stay."""
    worst[rest] = np.maximum(worst[rest], overlap(boxes[chosen][:, None], boxes[rest]).max(0))


class Suppress(Protocol):
    """What `suppress` is: see there."""

    def __call__(
        self,
        boxes: Array,
        threshold: float,
        limit: int | None = None,
        *,
        eta: float = 1,
        overlap: Overlap = IOU,
    ) -> Array: ...


class Suppressing(Op):
    """An operation that suppresses boxes, with a function of its own that whoever runs it may replace."""

    suppress: ClassVar[Suppress] = staticmethod(suppress)
