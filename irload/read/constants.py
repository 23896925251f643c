"""Const layers: their attributes, checked against each other and the .bin file, and their data, loaded lazily."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.shape import Shape
from irload.core.tensor import Array
from irload.errors import AttributeInvalid, ReadError, ShapeMismatch
from irload.read.raw import RawLayer
from irload.read.weights import Weights
from irload.record import record
from irload.safety.limits import Limits

RANK = 64
"""The maximum rank of a NumPy array."""


def constant(layer: RawLayer, weights: Weights, limits: Limits, warn: Callable[[str], None]) -> Callable[[], Array]:
    """Return a function that loads the data of a Const, so that inspecting a model reads no weights.

    Everything that can be checked without the data is checked here, before memory is allocated.
    """
    texts: list[str] = []
    for key in ("element_type", "shape", "offset", "size"):
        if key not in layer.data:
            raise AttributeInvalid(f"attribute {key} is missing; Const requires it")
        texts.append(layer.data[key])
    element, shape = et.element(texts[0]), _shape(texts[1])
    offset, size = _natural("offset", texts[2]), _natural("size", texts[3])
    if element is et.dynamic:
        raise AttributeInvalid("attribute element_type must be that of the values, found dynamic")
    count = prod(shape)
    limits.require("tensor_bytes", count * element.dtype.itemsize, f"{element}{list(shape)} is too large")
    _check_size(element, shape, count, size, warn)
    if weights.present:
        weights.check(offset, size)
    if count == 0:  # an empty constant takes one byte of padding
        return _empty(element, shape)
    return StoredConstant(weights, offset, size, element, shape)


@record(eq=False)
class StoredConstant:
    """The data of a Const: a range of the .bin file. Calling it returns the values."""

    weights: Weights
    offset: int
    size: int
    element: ElementType
    shape: tuple[int, ...]

    def __call__(self) -> Array:
        return self.weights.array(self.offset, self.size, self.element, self.shape)

    def codes(self) -> Array:
        """The bytes as stored: values of fewer than 8 bits are packed."""
        return self.weights.raw(self.offset, self.element.bytes_for(prod(self.shape)))


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = Shape.parse(text).static
    except ShapeMismatch as error:
        raise AttributeInvalid(f"attribute shape of a Const: {error.message}") from None
    if len(shape) > RANK:
        raise ReadError(f"rank {len(shape)} exceeds {RANK}, the maximum of NumPy")
    return shape


def _check_size(
    element: ElementType, shape: tuple[int, ...], count: int, size: int, warn: Callable[[str], None]
) -> None:
    needed = element.bytes_for(count)
    if element is et.string and count:
        needed = 4 * (count + 2)  # only the header: the count, and the end of each string
    if size < needed:
        least = "at least the " if element is et.string else "the "
        raise ReadError(f"size {size} is less than {least}{needed} bytes that {element}{list(shape)} takes")
    if size > needed and needed and element is not et.string:
        warn(f"size {size} is more than the {needed} bytes that {element}{list(shape)} takes")


def _empty(element: ElementType, shape: tuple[int, ...]) -> Callable[[], Array]:
    try:
        empty = np.zeros(shape, element.dtype)
    except (ValueError, MemoryError):
        raise ReadError(f"shape {list(shape)} exceeds NumPy's largest array, although it is empty") from None
    return lambda: empty


def _natural(key: str, text: str) -> int:
    digits = text.lstrip()  # OpenVINO refuses trailing blanks
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise AttributeInvalid(f"attribute {key} must be a non-negative integer, found '{text[:40]}'")
    return int(digits)
