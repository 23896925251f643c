"""Statistics of a constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from irload.core.tensor import Array
from irload.errors import IRError
from irload.graph import Node

__all__ = ["Moments", "moments", "statistics"]

BINS = 32
BLOCK = 1 << 20
"""Elements processed at a time."""
FIRST = 8
"""Elements shown individually."""
SAMPLE = 1 << 22
"""Maximum number of elements in a histogram: of larger constants, evenly spaced samples. Other statistics use all."""


def statistics(node: Node) -> dict[str, Any] | None:
    """Return minimum, maximum, mean, standard deviation, share of zeros, and a histogram of the finite values.

    None if the weights are missing, not numeric, or empty.
    """
    try:
        values = node.op.attributes["data"]()
    except IRError:
        return None
    if values.dtype == object or not values.size:
        return None
    flat = values.reshape(-1)
    summary = moments(flat)
    statistics: dict[str, Any] = {
        "zeros": summary.zeros / flat.size,
        "nonfinite": flat.size - summary.count,
        "first": _first(flat),
    }
    if summary.count:
        low, high = float(summary.low), float(summary.high)
        statistics |= {"min": low, "max": high, "mean": summary.mean, "std": summary.std}
        statistics["histogram"] = _histogram(flat, low, high)
    return statistics


class Moments(NamedTuple):
    """Statistics over the finite elements; all but `zeros` and `count` are 0 if no element is finite.

    `low` and `high` are integers for integer elements, else f64.
    """

    zeros: int
    count: int
    low: Any = 0
    high: Any = 0
    mean: float = 0.0
    std: float = 0.0


def moments(flat: Array) -> Moments:
    """Return the moments of a numeric vector, computed in blocks; the deviation takes a second pass with the mean."""
    zeros, count, total = 0, 0, 0.0
    lows: list[Any] = []
    highs: list[Any] = []
    for block, finite in _blocks(flat):
        zeros += int(np.count_nonzero(block == 0))
        if finite.size:
            count, total = count + finite.size, total + float(finite.sum())
            exact = block if block.dtype.kind in "biu" else finite
            lows.append(exact.min())
            highs.append(exact.max())
    if not count:
        return Moments(zeros, count)
    mean = total / count
    square = sum(float(np.square(finite - mean).sum()) for _, finite in _blocks(flat))
    return Moments(zeros, count, min(lows), max(highs), mean, (square / count) ** 0.5)


def _blocks(flat: Array) -> Iterator[tuple[Array, Array]]:
    """Yield blocks unchanged, and their finite elements in f64."""
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        numbers = block.astype(np.float64)
        yield block, numbers if block.dtype.kind in "biu" else numbers[np.isfinite(numbers)]


def _histogram(flat: Array, low: float, high: float) -> list[int]:
    """Return counts between the minimum and the maximum, in bins of equal width."""
    sample = flat[:: max(1, -(-flat.size // SAMPLE))].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    if high <= low or not np.isfinite(high - low):
        return [int(sample.size)]
    return [int(n) for n in np.histogram(sample, BINS, (low, high))[0]]


def _first(flat: Array) -> str:
    """Format the first elements in the precision of their type."""
    values = flat[:FIRST]
    numbers = (
        values if values.dtype.kind in "biu" else values.astype(np.float64 if values.dtype == "f8" else np.float32)
    )
    more = " …" if flat.size > FIRST else ""
    return " ".join(str(n) if values.dtype.kind in "biu" else f"{n:.6g}" for n in numbers.tolist()) + more
