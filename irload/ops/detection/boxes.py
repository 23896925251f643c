"""Arithmetic on boxes that detection and suppression share: areas, overlap, greedy selection.

Boxes are the last axis of an array: (x1, y1, x2, y2), or (y1, x1, y2, x2), as no formula here tells x from y. `offset`
is what is added to every width and height: 1 where coordinates count whole pixels, 0 where they are normalized.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irload.core.tensor import Array

Overlap = Callable[[Array, Array], Array]
"""Takes one box and n boxes; returns the intersection over union of each of the n with the one."""


def sizes(boxes: Array, offset: float = 0) -> Array:
    """Width and height of each box, in the order of its coordinates: [..., 2]."""
    return boxes[..., 2:] - boxes[..., :2] + boxes.dtype.type(offset)


def iou(box: Array, others: Array, offset: float = 0, *, bridge: bool = False) -> Array:
    """Intersection over union of `box` with each of `others`; 0 where either has no area or they do not touch.

    With `bridge`, boxes less than `offset` apart overlap too.
    """
    a, b = sizes(box, offset).prod(-1), sizes(others, offset).prod(-1)
    low, high = np.maximum(box[..., :2], others[..., :2]), np.minimum(box[..., 2:], others[..., 2:])
    common = np.maximum(high - low + box.dtype.type(offset), 0).prod(-1)
    if not bridge:
        common = np.where((high >= low).all(-1), common, box.dtype.type(0))
    return ratio(common, a + b - common, (a > 0) & (b > 0))


def ratio(a: Array, b: Array, where: Array) -> Array:
    """A / b where `where` holds, 0 elsewhere."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, where.shape), a.dtype), where=where)


def ordered(corners: Array) -> Array:
    """Boxes given by any two opposite corners, as lower corner and upper corner."""
    a, b = corners[..., :2], corners[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)


def from_center(boxes: Array) -> Array:
    """Corners of boxes given as (center x, center y, width, height)."""
    center, half = boxes[..., :2], boxes[..., 2:] / 2
    return np.concatenate([center - half, center + half], -1)


def by_score(scores: Array) -> Array:
    """The indices of `scores` from the highest down; of equal ones the lower index comes first."""
    return np.argsort(-scores, kind="stable")


def suppress(
    boxes: Array,
    threshold: float,
    limit: int | None = None,
    *,
    eta: float = 1,
    overlap: Overlap = iou,
) -> Array:
    """Greedy suppression: the indices of the boxes that stay, of boxes given best first.

    A box stays when it overlaps none that stayed before it by more than `threshold`. At most `limit` stay. With `eta`
    below 1 the threshold shrinks by that factor after each box that stays, until it is 0.5 or less.
    """
    worst = np.zeros(len(boxes), boxes.dtype)  # the greatest overlap of each box with one that stays
    stay: list[int] = []
    at = 0
    while at < len(boxes) and (limit is None or len(stay) < limit):
        free = worst[at:] <= threshold
        step = int(free.argmax())
        if not free[step]:
            break
        at += step
        stay.append(at)
        worst[at + 1 :] = np.maximum(worst[at + 1 :], overlap(boxes[at], boxes[at + 1 :]))
        at += 1
        if eta < 1 and threshold > 0.5:
            threshold *= eta
    return np.array(stay, np.int64)
