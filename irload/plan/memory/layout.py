"""Layouts: axis order and stored type of a value in its buffer."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from irload.plan.ir.strides import Strided
from irload.record import record


@record()
class RowCodes:
    """The form of rows of f32 that are quantized to i8 in groups for one matmul. An element is scale · code.

    A row consists of the codes of all its elements, followed, for each group, by the scale and scale · Σ codes in f32.
    `group`: the number of consecutive elements that share a scale. `interleaved`: each 8 codes are stored in the order
    0, 2, 4, 6, 1, 3, 5, 7.
    """

    group: int
    interleaved: bool

    def row(self, length: int) -> int:
        """The bytes of a row of `length` elements."""
        return length + length // self.group * FACTORS


FACTORS = 8
"""Bytes per group, in addition to its codes."""


@record()
class Layout:
    """The layout of a value in its buffer. `order`: the axes, outermost first; empty means row-major.

    `storage`: the stored type, if it differs from the value's type. `nbytes`: the size in bytes of a copy in a blocked
    layout, which strides cannot describe. `codes`: the form of quantized rows in the copy.
    """

    order: tuple[int, ...] = ()
    storage: np.dtype[Any] | None = None
    nbytes: int | None = None
    codes: RowCodes | None = None

    @property
    def is_private(self) -> bool:
        """True if only the back end that requested the layout reads the value, because its stored type differs."""
        return self.storage is not None

    def size(self, shape: tuple[int, ...]) -> int:
        """The number of elements of the buffer."""
        return prod(shape)

    def strided(self, shape: tuple[int, ...]) -> Strided:
        """Return the strides of the value."""
        return Strided.dense(shape, self.order)


PLANAR = Layout()
"""The row-major layout."""


def channels_last(rank: int) -> Layout:
    """Return [N,X…,C] for a logical [N,C,X…]."""
    return Layout((0, *range(2, rank), 1))
