"""Decodes the predictions of a network to boxes."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array

WIDEST = float(np.log(1000 / 16))
"""Detectron's upper bound of dw and dh, the logarithms of the scale factors."""


def refine(boxes: Array, deltas: Array, offset: float = 0, widest: float | None = None, inset: bool = True) -> Array:
    """Boxes [..., 4] moved by (dx, dy) in units of their size and resized by exp(dw), exp(dh), at most exp(`widest`).

    `offset` is added to widths and heights (1 if coordinates count pixels); `inset` subtracts it from the far corner.
    """
    size = boxes[..., 2:] - boxes[..., :2] + boxes.dtype.type(offset)
    center = boxes[..., :2] + size / 2 + deltas[..., :2] * size
    growth = deltas[..., 2:] if widest is None else np.minimum(deltas[..., 2:], deltas.dtype.type(widest))
    half = np.exp(growth) * size / 2
    return np.concatenate([center - half, center + half - boxes.dtype.type(offset if inset else 0)], -1)


def clip(boxes: Array, height: float, width: float) -> Array:
    """Boxes (x1, y1, x2, y2) clamped to 0..width and 0..height."""
    return boxes.clip(0, np.array([width, height, width, height], boxes.dtype))
