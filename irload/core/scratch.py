"""The working memory of operations, which their outputs do not show."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.errors import LimitExceeded

SCRATCH = 1 << 34
"""Bytes that one operation may take besides its tensors. Everything real takes far less."""


def require_scratch(shape: Sequence[int], dtype: np.dtype, what: str) -> None:
    """Raise LimitExceeded before an array of this shape is made, where it would take more than SCRATCH bytes."""
    size = prod(shape) * dtype.itemsize
    if size > SCRATCH:
        raise LimitExceeded(f"{what}, {list(shape)}, would take {size} bytes of working memory; the limit is {SCRATCH}")
