"""Limits the working memory of operations, in addition to their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.errors import LimitExceeded

SCRATCH = 1 << 34
"""Maximum bytes of working memory of one operation, far above the need of any real model."""


def require_scratch(shape: Sequence[int], dtype: np.dtype, subject: str) -> None:
    """Raise LimitExceeded if an array of this shape would take more than SCRATCH bytes. Call it before allocating."""
    size = prod(shape) * dtype.itemsize
    if size > SCRATCH:
        raise LimitExceeded(
            f"{subject}, {list(shape)}, would take {size} bytes of working memory; the limit is {SCRATCH}"
        )
