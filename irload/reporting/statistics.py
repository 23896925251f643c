"""What a constant holds, in a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.errors import IRError
from irload.graph import Node

__all__ = ["statistics"]

BINS = 32
BLOCK = 1 << 20
"""Elements at a time."""
FIRST = 8
"""Elements that are shown themselves."""
SAMPLE = 1 << 22
"""Elements that a histogram counts at most, evenly spread; the other numbers are of all."""


def statistics(node: Node) -> dict[str, Any] | None:
    """Least, greatest and mean value, standard deviation, share of zeros, and a histogram of the finite values.

    None where the weights are missing, are no numbers, or where there are none.
    """
    try:
        values = node.op.attributes["data"]()
    except IRError:
        return None
    if values.dtype == object or not values.size:
        return None
    flat = values.reshape(-1)
    count = zeros = 0
    total = squares = 0.0
    low, high = np.inf, -np.inf
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK].astype(np.float64)
        zeros += int(np.count_nonzero(block == 0))
        block = block[np.isfinite(block)]
        if block.size:
            count += block.size
            total += float(block.sum())
            squares += float(np.square(block).sum())
            low, high = min(low, float(block.min())), max(high, float(block.max()))
    found: dict[str, Any] = {"zeros": zeros / flat.size, "nonfinite": flat.size - count, "first": _first(flat)}
    if count:
        mean = total / count
        spread = max(squares / count - mean * mean, 0.0) ** 0.5
        found |= {"min": low, "max": high, "mean": mean, "std": spread, "histogram": _histogram(flat, low, high)}
    return found


def _histogram(flat: Array, low: float, high: float) -> list[int]:
    """Counts between the least and the greatest value, in bins of one width."""
    sample = flat[:: max(1, -(-flat.size // SAMPLE))].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    if high <= low or not np.isfinite(high - low):
        return [int(sample.size)]
    return [int(n) for n in np.histogram(sample, BINS, (low, high))[0]]


def _first(flat: Array) -> str:
    """The first elements in the digits of their type."""
    values = flat[:FIRST]
    numbers = (
        values if values.dtype.kind in "biu" else values.astype(np.float64 if values.dtype == "f8" else np.float32)
    )
    more = " …" if flat.size > FIRST else ""
    return " ".join(str(n) if values.dtype.kind in "biu" else f"{n:.6g}" for n in numbers.tolist()) + more
