"""Random material for cases: element types, shapes, arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from tests.harness.case import Array, Random

FLOATS = (et.f32, et.f16, et.bf16, et.f64)
INTEGERS = (et.i32, et.i64, et.i8, et.u8, et.i16, et.u16, et.u32, et.u64)
INDICES = (et.i32, et.i64)


def random_shape(rng: Random, rank: int | tuple[int, int] = (0, 4), low: int = 1, high: int = 5) -> tuple[int, ...]:
    """A shape of the given rank, or of a rank in the given range, with dims in low..high."""
    if isinstance(rank, tuple):
        rank = int(rng.integers(rank[0], rank[1] + 1))
    return tuple(int(n) for n in rng.integers(low, high + 1, rank))


def random_array(rng: Random, shape: Sequence[int], element: ElementType, low: float = -4, high: float = 4) -> Array:
    """Values in low..high (clipped to the range of the type), in the element's storage dtype."""
    if element is et.boolean:
        return rng.integers(0, 2, shape).astype(bool)
    if element.is_integer:
        low = max(low, 0) if not element.is_signed else low
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(element.dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(np.float32).astype(element.dtype)


def pick(rng: Random, options: Sequence[Any]) -> Any:
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def broadcastable(rng: Random, rank: tuple[int, int] = (0, 4)) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast by NumPy's rules: ones and missing leading axes at random."""
    full = random_shape(rng, rank)

    def thinned() -> tuple[int, ...]:
        start = int(rng.integers(0, len(full) + 1)) if rng.random() < 0.3 else 0
        return tuple(1 if rng.random() < 0.3 else n for n in full)[start:]

    return thinned(), thinned()
