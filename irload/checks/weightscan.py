"""Counts NaN, infinities and implausible magnitudes in a constant, in one pass over blocks that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.tensor import Array
from irload.errors import IRError
from irload.read.weights import Weights

# Affects speed only.
BLOCK = 1 << 16  # pragma: no mutate


@dataclass(frozen=True, slots=True)
class Scan:
    """Counts over one constant. `wild` are NaNs and magnitudes beyond 1e18 (f16: NaN alone)."""

    count: int
    nans: int
    infinities: int
    wild: int
    nonzero: bool


# Per type: an unsigned integer of its width, the mask of its magnitude bits, the bit patterns of infinity and of 1e18.
_LAYOUT = {
    et.f16: (np.uint16, 0x7FFF, 0x7C00, 0x7C01),
    et.bf16: (np.uint16, 0x7FFF, 0x7F80, 0x5D5E),
    et.f32: (np.uint32, 0x7FFFFFFF, 0x7F800000, 0x5D5E0B6B),
    et.f64: (np.uint64, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000, 0x43ABC16D674EC800),
}


def scan(weights: Weights, element: ElementType, count: int, offset: int) -> Scan | None:
    """The counts of a floating-point constant; None for other types, empty constants, and bytes that are missing."""
    layout = _LAYOUT.get(element)
    if layout is None or not weights.present or not count:
        return None
    try:
        return _count(weights.raw(offset, element.bytes_for(count)), *layout)
    except IRError:
        return None


def _count(raw: Array, overlay: type, magnitude: int, infinity: int, wild: int) -> Scan:
    width = np.dtype(overlay).itemsize
    nans = infinities = wilds = 0
    nonzero = False
    for block in _blocks(raw[: raw.size // width * width], overlay):
        bits = block & overlay(magnitude)
        top = bits.max()
        nonzero = nonzero or bool(top)
        if top >= overlay(min(wild, infinity)):
            nans += int(np.count_nonzero(bits > overlay(infinity)))
            infinities += int(np.count_nonzero(bits == overlay(infinity)))
            wilds += int(np.count_nonzero(bits >= overlay(wild)))
    return Scan(raw.size // width, nans, infinities, wilds, nonzero)


def _blocks(raw: Array, overlay: type) -> Iterator[Array]:
    width = np.dtype(overlay).itemsize
    for start in range(0, raw.size, BLOCK * width):
        yield raw[start : start + BLOCK * width].view(overlay)
