"""Shared by the random cases of the data-movement family."""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.element import ElementType, boolean
from tests.harness.case import Input, Random, const, param
from tests.harness.material import FLOATS, INDICES, INTEGERS, pick, random_array, random_shape

ANY_ELEMENT = (*FLOATS, *INTEGERS, boolean)


def data(rng: Random, shape: tuple[int, ...], element: ElementType | None = None) -> Input:
    """A run-time tensor of any element type."""
    chosen: ElementType = pick(rng, ANY_ELEMENT) if element is None else element
    return param(random_array(rng, shape, chosen), chosen)


def some_shape(rng: Random, rank: tuple[int, int], high: int = 4, empty: bool = True) -> tuple[int, ...]:
    """A shape of a rank in the range; one in fifteen has an empty axis."""
    shape = list(random_shape(rng, rank, 1, high))
    if shape and empty and rng.random() < 1 / 15:
        shape[int(rng.integers(len(shape)))] = 0
    return tuple(shape)


def signed(rng: Random, axis: int, rank: int) -> int:
    """The axis counted from the front or from the end."""
    return axis - rank if rng.random() < 0.4 else axis


def index(rng: Random, values: Any, constant: bool | None = None) -> Input:
    """An index input of either index type, by default constant two times in three."""
    make = pick(rng, (const, const, param)) if constant is None else const if constant else param
    element = pick(rng, INDICES)
    return make(np.asarray(values, np.int64), element)
