"""Packing of values of less than 8 bits into bytes, the first value in the high bits.

That is the order of OpenVINO's helpers. In files the first of two 4-bit values is in the low bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irload.core.element import ElementType, f4e2m1, nf4, u4
from irload.core.packing import pack, unpack
from irload.core.tensor import Array
from irload.openvino.errors import OpenVINOError
from irload.openvino.types import Type, element_of

__all__ = ["pack_data", "unpack_data"]


def pack_data(array: Any, type: Type) -> Array:
    """The bytes of integers, which are the codes of nf4 and f4e2m1. Raises for a number that is not an integer."""
    element = _packed(type)
    codes = np.asarray(array)
    whole = codes.astype(element.dtype if element.is_integer else np.uint8)
    if not np.array_equal(whole, codes):
        raise OpenVINOError(f"values of {element} are integers; the conversion would round some")
    order = _order(element, whole.size)
    whole = np.pad(whole.reshape(-1), (0, order.size - whole.size))[order]
    return np.frombuffer(pack(whole, element if element.is_integer else u4), np.uint8)


def unpack_data(array: Array, type: Type, shape: Any) -> Array:
    """The integers in packed bytes: of dtype int8 for i4, otherwise uint8."""
    element = _packed(type)
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    sizes = tuple(int(n) for n in shape)
    count = int(np.prod(sizes, dtype=np.int64))
    order = _order(element, count)
    return unpack(raw, element if element.is_integer else u4, order.shape)[order][:count].reshape(sizes)


def _order(element: ElementType, count: int) -> Array:
    """The positions of values, reversed within each byte, for a number of values that fills bytes.

    u1, u3 and u6 are in the order of files.
    """
    group = 8 // element.bits if element.bits in (2, 4) else 1
    return np.arange(-(-count // group) * group).reshape(-1, group)[:, ::-1].reshape(-1)


def _packed(type: Type) -> ElementType:
    element = element_of(type)
    if element.bits >= 8 or not (element.is_integer or element in (nf4, f4e2m1)):
        raise AssertionError(f"values of {element} are not packed")
    return element
