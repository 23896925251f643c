"""Data for the inputs of a program. The names of inputs encode its kind, so files of programs are self-contained.

`normal_…` real numbers, `dyadic1x4_…` multiples of 2^-1 up to 4, `odd_…` with infinities and NaN, `index5_…` integers
from −5 to 4, `some_…` mostly true.
"""

from __future__ import annotations

import zlib

import numpy as np

from irload.core.element import ElementType
from tests.fuzz.programs.build import exact_of
from tests.fuzz.programs.exact import UNEVEN
from tests.harness.case import Array


def fed(name: str, element: ElementType, shape: tuple[int, ...], turn: int) -> Array:
    """The array for an input; differs for each turn."""
    rng = np.random.default_rng((zlib.crc32(name.encode()), turn))
    words = name.split("_")
    if element.name == "boolean":
        return rng.random(shape) < (0.8 if "some" in words else 0.5)
    if element.is_integer:
        count = next((int(w.removeprefix("index")) for w in words if w.startswith("index")), 3)
        return np.asarray(rng.integers(-count if element.is_signed else 0, count, shape)).astype(element.dtype)
    exact = exact_of(name)
    if exact.grain == UNEVEN:
        array = np.asarray(np.clip(rng.standard_normal(shape), -4, 4))
    else:
        array = np.asarray(
            rng.integers(-exact.largest * 2**exact.grain, exact.largest * 2**exact.grain + 1, shape) / 2**exact.grain
        )
    array = array.astype(np.float32)
    if "odd" in words and array.size:
        flat = array.reshape(-1)
        where = rng.choice(flat.size, min(flat.size, int(rng.integers(1, 4))), replace=False)
        flat[where] = rng.choice(np.array([np.nan, np.inf, -np.inf], np.float32), len(where))
    return array.astype(element.dtype)
