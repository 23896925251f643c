"""Inputs for a mutant: the inputs of its base if they fit, otherwise small random arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import irload
from irload.core.shape import Dim, Shape
from tests.harness.case import Array, Random
from tests.harness.material import random_array

RANK = 64
"""The maximum number of axes of a NumPy array."""
LARGEST = 1 << 20
"""The maximum number of elements of a generated input."""


def inputs_for(model: irload.Model, good: Sequence[Array], rng: Random) -> list[Array] | None:
    """An array for each input of the model, or None if one would exceed `LARGEST`."""
    arrays: list[Array] = []
    for k, port in enumerate(model.inputs):
        element, shape = port.element_type, port.partial_shape
        if k < len(good) and good[k].dtype == element.dtype and shape.contains(Shape(*good[k].shape)):
            arrays.append(good[k])
            continue
        sizes = [_size(d, rng) for d in (shape.dims if shape.rank is not None else (Dim(2), Dim(3)))]
        if len(sizes) > RANK or float(np.prod(np.array(sizes, float))) > LARGEST:
            return None
        if element is irload.elements.string:
            arrays.append(np.full(sizes, "text", object))
        elif element is irload.elements.dynamic:
            arrays.append(np.zeros(sizes, np.float32))
        else:
            arrays.append(random_array(rng, sizes, element))
    return arrays


def _size(dim: Dim, rng: Random) -> int:
    high = dim.lo + 3 if dim.hi is None else min(dim.hi, dim.lo + 3)
    return int(rng.integers(dim.lo, high + 1)) if dim.lo < LARGEST else dim.lo
