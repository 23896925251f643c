"""Conversion of values to the element type of an input; values that would change are refused."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from irload.core.element import ELEMENTS, ElementType, dynamic, string
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.graph import Port
from irload.runtime.inputs import bind

_NARROW = frozenset(e.dtype for e in ELEMENTS if e.is_low_precision)
"""Floats narrower than f32; they include bf16 and f8, whose NumPy kind is not `f`."""


def cast(port: Port, value: Array, *, lossy: bool = False) -> Array:
    """Convert `value` to the element type of the input `port`, with the shape unchanged.

    Safe conversions are: floats to narrower floats, rounded; integers and booleans to floats or integers that represent
    them exactly; whole floats to integers; 0 and 1 to booleans. With `lossy`, all conversions of OpenVINO's API
    follow the rules of Convert: truncate, wrap, parse text as numbers. Raises InputInvalid.
    """
    element = port.element_type
    if element is dynamic or element is string or value.dtype == element.dtype:
        return value
    if lossy:
        return value
    narrow = value.dtype in _NARROW
    if value.dtype.kind not in "biuf" and not narrow:
        _refuse(port, value, "")
    loss = _loss(element, value.astype(np.float32) if narrow else value)
    if loss:
        _refuse(port, value, loss)
    return value


def _refuse(port: Port, value: Array, loss: str) -> NoReturn:
    kind = "text" if value.dtype.kind in "OUST" else f"of dtype {value.dtype}"
    remedy = " (--cast converts nevertheless)" if value.dtype.kind in "biufOUST" else ""
    raise InputInvalid(f"input '{port.any_name}' is {kind}{loss}; the model takes {port.element_type}{remedy}")


def _loss(element: ElementType, value: Array) -> str:
    """Describe the loss of a conversion; empty if there is none."""
    if not value.size:
        return ""
    if element.is_float and value.dtype.kind == "f":
        if value.dtype.itemsize <= element.dtype.itemsize:
            return ""
        with np.errstate(over="ignore"):
            narrow = value.astype(np.float32).astype(element.dtype).astype(np.float32)
        return " with values beyond its range" if (np.isfinite(value) & ~np.isfinite(narrow)).any() else ""
    low, high = value.min(), value.max()
    if value.dtype.kind == "f":
        if not np.isfinite(value).all():
            return " with NaN or infinite values"
        if (value != np.trunc(value)).any():
            return " with fractions"
    if element.is_float:
        with np.errstate(over="ignore"):
            narrow = value.astype(np.float64).astype(np.float32).astype(element.dtype).astype(np.float64)
            same = np.isfinite(narrow) & (narrow == value.astype(np.float64))
        exact = value.dtype.itemsize <= 4 or (int(low) >= -(2**53) and int(high) <= 2**53)
        return "" if same.all() and exact else " with integers that it cannot hold exactly"
    least, most = _range(element)
    return "" if least <= int(low) and int(high) <= most else f" with values outside {least}..{most}"


def _range(element: ElementType) -> tuple[int, int]:
    if element.name == "boolean":
        return 0, 1
    bits = element.bits
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if element.is_signed else (0, (1 << bits) - 1)


def bound(port: Port, value: Array, *, lossy: bool = False) -> Array:
    """Return the value cast and checked against the shape of the port. Raises InputInvalid."""
    return bind([port], [cast(port, value, lossy=lossy)])[0]
