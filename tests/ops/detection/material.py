"""Random boxes and scores for the cases of detection and suppression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core.element import ElementType, f32
from tests.harness.case import Array, Random


def random_boxes(
    rng: Random,
    shape: Sequence[int],
    element: ElementType = f32,
    *,
    scale: float = 1,
    center: bool = False,
    swapped: bool = False,
    dense: bool = False,
) -> Array:
    """Boxes [*shape, 4] within 0..scale that often overlap: corners, or center and size.

    `swapped` swaps corners at random, `dense` makes all boxes overlap each other.
    """
    low = rng.uniform(0, 0.3 if dense else 0.6, (*shape, 2))
    size = rng.uniform(0.35 if dense else 0.05, 0.4, (*shape, 2))
    if center:
        boxes = np.concatenate([low + size / 2, size], -1)
    else:
        corners = np.stack([low, low + size], -2)
        if swapped:
            flip = rng.random((*shape, 1, 2)) < 0.2
            corners = np.where(flip, corners[..., ::-1, :], corners)
        boxes = corners.reshape(*shape, 4)
    return (boxes * scale).astype(element.dtype)


def random_scores(rng: Random, shape: Sequence[int], element: ElementType = f32) -> Array:
    """Scores in 0..1 that are all different, except in types that have too few values."""
    count = int(np.prod(shape))
    return ((rng.permutation(count) + 0.5) / count).reshape(shape).astype(element.dtype)
