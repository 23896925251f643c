"""The types of elements that kernels read and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from irload.core.tensor import Array
from irload.plan.backends.llvm import values

F32, BF16, F16, I64, I32, I16, I8, U8 = "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "u8"

SIZES = values.SIZES
"""The size of each type in bytes."""

WORD = 4
"""The bytes of a word: consecutive elements of a sum, in one column, that a lane multiplies in one instruction."""

BYTES = (I8, U8)
"""The types of quantized values."""

QUANTIZED = (*BYTES, I16)
"""The stored types of quantized values. I16 stores u8 for products of i16."""

INTEGERS = (I32, I64)
"""The types of integers that are computed as such, not as f32."""

DTYPES: dict[str, np.dtype[Any]] = {
    F32: np.dtype(np.float32),
    BF16: np.dtype(bfloat16),
    F16: np.dtype(np.float16),
    I64: np.dtype(np.int64),
    I32: np.dtype(np.int32),
    I16: np.dtype(np.int16),
    I8: np.dtype(np.int8),
    U8: np.dtype(np.uint8),
}
"""The NumPy dtype of each type."""

_OF_DTYPE = {dtype: element for element, dtype in DTYPES.items()} | {np.dtype(bool): U8}


def element_of(array: Array) -> str:
    """The type of an array's elements. Raises TypeError for a dtype that no kernel multiplies or stores."""
    name = _OF_DTYPE.get(array.dtype)
    if name is None:
        raise TypeError(f"kernels read and write {', '.join(DTYPES)}, found an array of {array.dtype}")
    return name


def elements_of(arrays: Iterable[Array]) -> tuple[str, ...]:
    """The types of the elements of several arrays."""
    return tuple(element_of(array) for array in arrays)


def is_contiguous(array: Array, axis: int) -> bool:
    """True if neighbours along an axis are adjacent in memory."""
    return array.strides[axis] == array.itemsize
