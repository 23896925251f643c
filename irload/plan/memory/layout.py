"""Layouts: how the elements of a value lie in a buffer of its own, as the back end asks that makes or takes it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from irload.plan.ir.strides import Strided
from irload.record import record


@record()
class Layout:
    """Axes from the outermost to the innermost. Without any, a value is planar: its axes in their own order.

    `block`: where the last axis stands in `order` twice, so many of its elements lie innermost, as in
    [C/32][H][W][32]; the axis is filled up to whole blocks. `border`: for each axis, in their own order, the elements
    kept free before and after; who takes the value fills them. `storage`: the type that is stored where it is not the
    value's own.
    """

    order: tuple[int, ...] = ()
    block: int = 1
    border: tuple[tuple[int, int], ...] = ()
    storage: np.dtype[Any] | None = None

    @property
    def has_strides(self) -> bool:
        """True where strides say where the elements lie."""
        return self.block == 1

    @property
    def is_strided(self) -> bool:
        """True where strides say it all, so that every back end can read the value."""
        return self.has_strides and self.storage is None

    def extents(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The lengths of the axes as they lie, outermost first, borders and the rest of the last block included."""
        border = self.border or ((0, 0),) * len(shape)
        sizes = [before + n + after for n, (before, after) in zip(shape, border, strict=True)]
        order = self.order or tuple(range(len(shape)))
        if self.block == 1:
            return tuple(sizes[k] for k in order)
        blocked = order[-1]
        sizes[blocked] = -(-sizes[blocked] // self.block)
        return (*(sizes[k] for k in order[:-1]), self.block)

    def size(self, shape: tuple[int, ...]) -> int:
        """The elements of the buffer."""
        return prod(self.extents(shape))

    def whole(self, shape: tuple[int, ...]) -> Strided:
        """The value with its border, each axis in its own place. Raises ValueError for blocks, which no strides say."""
        if self.block != 1:
            raise ValueError("a blocked layout has no strides")
        order = self.order or tuple(range(len(shape)))
        extents = self.extents(shape)
        sizes = [0] * len(shape)
        for axis, n in zip(order, extents, strict=True):
            sizes[axis] = n
        return Strided.dense(tuple(sizes), order)

    def strided(self, shape: tuple[int, ...]) -> Strided:
        """Where the elements lie. Raises ValueError for blocks."""
        whole = self.whole(shape)
        border = self.border or ((0, 0),) * len(shape)
        offset = sum(before * stride for (before, _), stride in zip(border, whole.strides, strict=True))
        return Strided(shape, whole.strides, offset)


PLANAR = Layout()
"""The axes in their own order, without gaps."""


def channels_last(rank: int) -> Layout:
    """[N,X…,C] for a logical [N,C,X…]."""
    return Layout((0, *range(2, rank), 1))
