"""Arrays of strings: as `str` objects, in which bytes that are not UTF-8 are surrogates, and as kinds S and U."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.openvino.errors import OpenVINOError

__all__ = ["as_strings", "decoded", "encoded"]


def as_strings(array: Array) -> Array:
    """The strings of an array of kind U, S or O as `str` objects."""
    strings = np.empty(array.shape, object)
    for k, item in enumerate(array.flat):
        text = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
        if not isinstance(text, str):
            raise OpenVINOError(f"Unknown string kind passed to fill the Tensor's data! Element {k} is {text!r:.40}.")
        strings.flat[k] = str(text)
    return strings


def encoded(strings: Array) -> Array:
    """The strings as an array of kind S, in UTF-8."""
    array = np.array([str(v).encode("utf-8", "surrogateescape") for v in strings.flat], np.bytes_)
    return array.reshape(strings.shape) if array.size else np.empty(strings.shape, "S1")


def decoded(strings: Array) -> Array:
    """The strings as an array of kind U, in which U+FFFD replaces bytes that are not UTF-8."""
    array = np.array([_valid(str(v)) for v in strings.flat], np.str_)
    return array.reshape(strings.shape) if array.size else np.empty(strings.shape, "U1")


def _valid(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
