"""The types in which values of f32 are stored between steps."""

from __future__ import annotations

from collections.abc import Iterable

from ml_dtypes import bfloat16

from irload.core.tensor import Array

F32, BF16 = "f32", "bf16"

SIZES = {F32: 4, BF16: 2}
"""The bytes of each."""


def element_of(array: Array) -> str:
    """How the elements of an array are stored."""
    return BF16 if array.dtype == bfloat16 else F32


def elements_of(arrays: Iterable[Array]) -> tuple[str, ...]:
    """How the elements of each array are stored."""
    return tuple(element_of(array) for array in arrays)


def is_contiguous(array: Array, axis: int) -> bool:
    """True where neighbours along an axis lie beside each other."""
    return array.strides[axis] == array.itemsize
